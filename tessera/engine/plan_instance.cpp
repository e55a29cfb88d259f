#include "tessera/engine/plan_instance.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return cat(count, " ", count == 1 ? one : many);
}

void raise(LaunchOutcome& outcome, Tier tier, std::string_view cause) {
  outcome.tier = std::max(outcome.tier, tier);
  if (!outcome.cause.empty()) outcome.cause += ", ";
  outcome.cause += cause;
}

}  // namespace

std::string_view tessera::engine::to_string(Tier tier) {
  static constexpr std::string_view names[tier_count] = {"none", "hot",  "warm",    "recapture",
                                                         "code", "cold", "streamed"};
  return names[static_cast<std::size_t>(tier)];
}

void LaunchOutcome::clear() {
  tier = Tier::none;
  cause.clear();
  driven.clear();
  kernels = views = 0;
}

bool tessera::engine::is_of_data(const Error& error) {
  return error.code() != ErrorCode::memory && error.code() != ErrorCode::device &&
         error.code() != ErrorCode::internal;
}

Result<std::unique_ptr<PlanInstance>> PlanInstance::load(plan::PlanRef plan, runtime::Device& device,
                                                         const std::shared_ptr<runtime::MemoryPool>& pool) {
  std::unique_ptr<PlanInstance> out(new PlanInstance);
  out->executable_ = TESSERA_TRY(device.load(plan, pool));
  out->given_.resize(plan->inputs.size());
  out->plan_ = std::move(plan);
  return out;
}

bool PlanInstance::is_prepared_for(std::span<const std::int64_t> form) const {
  return is_prepared_ && std::ranges::equal(form_, form);
}

std::int64_t MovingPart::offset(std::span<const std::int64_t> positions) const {
  std::int64_t out = 0;
  for (const Term& term : terms) {
    const std::int64_t position = positions[term.position];
    out += (position < 0 ? position + term.size : position) * term.stride;
  }
  return out;
}

Result<void> PlanInstance::prepare(std::span<const std::int64_t> form, std::span<const std::int64_t> symbols,
                                   Parts parts, LaunchOutcome& outcome) {
  std::vector<op::Layout> layouts;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const bool is_part = i < parts.size() && parts[i];
    layouts.push_back(is_part ? parts[i]->layout : given_[i].storage->layout);
    layouts.back().offset = 0;
  }
  TESSERA_TRY(executable_->prepare(symbols, layouts));
  parts_ = std::move(parts);
  note_executable();
  is_prepared_ = is_prepared_anew_ = true;
  form_.assign(form.begin(), form.end());
  output_memory_.reset(binding().buffers.size());
  if (launches_ == 0) return {};
  raise(outcome, Tier::warm, "sizes");
  for (std::size_t s = 0; s < symbols.size(); ++s)
    outcome.cause += cat(s == 0 ? " " : ", ", "d", s, "=", symbols[s]);
  return {};
}

void PlanInstance::note_executable() {
  const std::vector<bool>& is_view = binding().is_view;
  views_ = static_cast<std::uint64_t>(std::count(is_view.begin(), is_view.end(), true));
  kernels_ = is_view.size() - views_;
  updates_ = dynamic_cast<const runtime::HoldsLaunches*>(executable_.get());
}

Result<void> PlanInstance::launch(std::span<const std::uint64_t> parameters, runtime::MemoryPool& pool,
                                  const LaunchOptions& options, LaunchOutcome& outcome) {
  set_inputs(options.keeps_copies, outcome);
  set_parameters(parameters, outcome);
  TESSERA_TRY(set_outputs(pool));
  TESSERA_TRY(executable_->run({.inputs = inputs_,
                                .parameters = parameters_,
                                .outputs = outputs_,
                                .buffers = buffers_,
                                .times = options.times}));
  note_update(outcome);
  ++launches_;
  is_prepared_anew_ = false;
  outcome.kernels += kernels_;
  outcome.views += views_;
  return {};
}

void PlanInstance::set_inputs(bool keeps_copies, LaunchOutcome& outcome) {
  std::size_t moved = 0;
  inputs_.resize(given_.size());
  buffers_.resize(given_.size());
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const auto& [storage, offset, is_part] = given_[i];
    const runtime::Buffer& buffer = *storage->buffer;
    const auto width = static_cast<std::int64_t>(ir::size_of(plan_->values[plan_->inputs[i]].type.dtype));
    std::byte* at = buffer.data() + (storage->layout.offset + offset) * width;
    moved += inputs_[i] != at;
    inputs_[i] = at;
    // What is derived from a part is for one launch: the next one has another.
    buffers_[i] = keeps_copies && !is_part && buffer.tells_changes() ? &buffer : nullptr;
  }
  if (moved > 0 && launches_ > 0) raise(outcome, Tier::warm, counted(moved, "buffer", "buffers"));
}

void PlanInstance::set_parameters(std::span<const std::uint64_t> parameters, LaunchOutcome& outcome) {
  std::size_t changed = 0;
  parameters_.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    changed += parameters_[i] != parameters[i];
    parameters_[i] = parameters[i];
  }
  if (changed > 0 && launches_ > 0) raise(outcome, Tier::hot, counted(changed, "number", "numbers"));
}

Result<void> PlanInstance::set_outputs(runtime::MemoryPool& pool) {
  const auto& buffers = binding().buffers;
  used_.clear();
  outputs_.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    used_.push_back(TESSERA_TRY(output_memory_.take(i, buffers[i].bytes, pool)));
    outputs_[i] = used_.back()->data();
  }
  return {};
}

/// What the device had to do may be more than what changed says: the first launch makes everything, and is
/// cold for whoever knows why there was one.
void PlanInstance::note_update(LaunchOutcome& outcome) {
  if (updates_ == nullptr) return;
  const runtime::LaunchUpdate update = updates_->launch_update();
  if (is_prepared_anew_ || update.is_remade) driven_ = updates_->driven_by_host();
  if (!driven_.empty()) outcome.driven = driven_;
  if (launches_ == 0) return;
  if (update.recaptured > 0)
    raise(outcome, Tier::recapture, counted(update.recaptured, "capture", "captures"));
  if (update.new_code > 0) raise(outcome, Tier::code, counted(update.new_code, "new kernel", "new kernels"));
  if (update.is_remade) raise(outcome, Tier::cold, "its graph was made anew");
  if (update.time.count() > 0 && !outcome.cause.empty())
    outcome.cause += cat(" in ", update.time.count() / 1000, " us");
}

runtime::Storage PlanInstance::output(std::size_t i) const {
  const plan::Place& place = binding().output(*plan_, i);
  runtime::Storage out{{}, place.layout};
  if (place.where == plan::Where::input) {
    const Input& input = given_[place.index];
    out.buffer = input.storage->buffer;
    out.layout.offset += input.storage->layout.offset + input.offset;
  } else {
    out.buffer = used_[place.index];
  }
  return out;
}

std::size_t PlanInstance::bytes() const {
  auto out = static_cast<std::size_t>(binding().memory.bytes);
  if (updates_ != nullptr) out += static_cast<std::size_t>(updates_->scratch_bytes());
  for (const auto& buffers : output_memory_.buffers())
    for (const Ref<runtime::Buffer>& buffer : buffers) out += buffer->size();
  return out;
}
