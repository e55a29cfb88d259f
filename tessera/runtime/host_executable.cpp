#include "tessera/runtime/host_executable.h"

#include <algorithm>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::runtime;
using plan::Place;
using plan::StepKind;
using plan::Where;

namespace {

/// Sets of addresses that are remembered beside the one of now, and the works of a plan that is not too large
/// to have a copy for each.
constexpr std::size_t most_aside = 3, most_works_aside = 1024;

}  // namespace

void runtime::clear(const op::Array& array) {
  std::fill_n(array.data, static_cast<std::size_t>(array.size()) * ir::size_of(array.dtype), std::byte{0});
}

Result<plan::Binding> HostExecutable::find_binding(std::span<const std::int64_t> sizes,
                                                   std::span<const op::Layout> inputs) {
  plan::Binding out = TESSERA_TRY(plan::find_lives(*plan_, sizes, inputs));
  TESSERA_TRY(assign_memory(out));
  return out;
}

Result<void> HostExecutable::prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) {
  plan::Binding binding = TESSERA_TRY(find_binding(sizes, inputs));
  const auto bytes = static_cast<std::size_t>(binding.memory.bytes);
  if (scratch_ == nullptr || scratch_->size() < bytes) {
    auto scratch = pool_->allocate(bytes);
    if (!scratch)
      return std::move(scratch).error().note(
          cat("for the values between the ", plan_->steps.size(), " steps of a plan",
              plan_->steps.empty() ? "" : cat(" that begins with '", plan_->steps.front().name(), "'")));
    scratch_ = *std::move(scratch);
  }
  binding_ = std::move(binding);
  cells_.assign(plan_->parameters.size(), 0);
  for (const std::int64_t size : binding_.size_cells) cells_.push_back(static_cast<std::uint64_t>(size));
  numbers_.assign(plan_->parameters.size(), 0);
  now_ = {};
  aside_.clear();
  next_aside_ = 0;
  for (plan::StepId s = 0; s < plan_->steps.size(); ++s)
    if (!binding_.is_view[s]) add_work(s);
  sizes_changed();
  return {};
}

void HostExecutable::add_work(plan::StepId s) {
  HostWork work{.step = s, .is_copy = plan_->steps[s].kind == StepKind::copy};
  const plan::Step& step = plan_->steps[s];
  for (const plan::ValueId v : step.inputs)
    work.inputs.push_back({plan_->values[v].type.dtype, binding_.places[v].layout, nullptr});
  for (const plan::ValueId v : step.results)
    work.results.push_back({plan_->values[v].type.dtype, binding_.places[v].layout, nullptr});
  now_.works.push_back(std::move(work));
}

std::byte* HostExecutable::address(plan::ValueId value, const Launch& launch) {
  const Place& place = binding_.places[value];
  switch (place.where) {
    case Where::input:
      return launch.inputs[place.index];
    case Where::output:
      return launch.outputs[place.index];
    case Where::constant:
      return plan_->constants[place.index].array().data;
    case Where::cell:
      return reinterpret_cast<std::byte*>(&cells_[place.index]);
    case Where::scratch:
      return scratch_->data() + place.byte;
  }
  return nullptr;
}

void HostExecutable::set_parameters(const Launch& launch) {
  for (std::size_t i = 0; i < plan_->parameters.size(); ++i) {
    cells_[i] = number_cell(launch.parameters[i], plan_->parameters[i]);
    numbers_[i] = launch.parameters[i];
  }
}

void HostExecutable::set_addresses(HostWork& work, const Launch& launch) {
  const plan::Step& step = step_of(work);
  const auto set = [&](op::Array& array, plan::ValueId value) {
    std::byte* at = address(value, launch);
    work.moved = work.moved || array.data != at;
    array.data = at;
  };
  for (std::size_t i = 0; i < step.inputs.size(); ++i) set(work.inputs[i], step.inputs[i]);
  for (std::size_t i = 0; i < step.results.size(); ++i) set(work.results[i], step.results[i]);
}

bool HostExecutable::Placed::are_of(const Launch& launch) const {
  const std::size_t inputs = launch.inputs.size();
  return addresses.size() == inputs + launch.outputs.size() &&
         std::equal(launch.inputs.begin(), launch.inputs.end(), addresses.begin()) &&
         std::equal(launch.outputs.begin(), launch.outputs.end(),
                    addresses.begin() + static_cast<std::ptrdiff_t>(inputs));
}

/// A steady loop sees the same addresses again and again: then nothing is to be done. Without the memory that
/// it takes to follow others, the works have no addresses until they do.
void HostExecutable::follow_addresses(const Launch& launch) {
  const bool is_first = now_.addresses.empty();
  if (!is_first && (now_.are_of(launch) || exchange_known(launch))) return;
  if (!is_first) make_room();
  now_.addresses.clear();
  now_.addresses.reserve(launch.inputs.size() + launch.outputs.size());
  for (HostWork& work : now_.works) set_addresses(work, launch);
  now_.have_moved = true;
  addresses_changed();
  now_.addresses.assign(launch.inputs.begin(), launch.inputs.end());
  now_.addresses.insert(now_.addresses.end(), launch.outputs.begin(), launch.outputs.end());
}

bool HostExecutable::exchange_known(const Launch& launch) {
  const auto known =
      std::find_if(aside_.begin(), aside_.end(), [&](const Placed& placed) { return placed.are_of(launch); });
  if (known == aside_.end()) return false;
  exchange_works(static_cast<std::size_t>(known - aside_.begin()));
  return true;
}

/// So that works can follow other addresses while those of now can come back.
void HostExecutable::make_room() {
  if (now_.works.size() > most_works_aside) return;
  if (aside_.size() == most_aside)
    return exchange_works(std::exchange(next_aside_, (next_aside_ + 1) % most_aside));
  // Both sides change, or none: what can fail is done first.
  Placed copy = now_;
  aside_.reserve(most_aside);
  put_aside();
  aside_.push_back(std::move(copy));
}

void HostExecutable::exchange_works(std::size_t aside) {
  std::swap(now_, aside_[aside]);
  exchange(aside);
}

const Buffer* HostExecutable::buffer_of(const HostWork& work, std::size_t input) const {
  const Place& place = binding_.places[step_of(work).inputs[input]];
  return place.where == Where::input && place.index < buffers_.size() ? buffers_[place.index] : nullptr;
}

Result<void> HostExecutable::run(const Launch& launch) {
  set_parameters(launch);
  buffers_ = launch.buffers;
  follow_addresses(launch);
  times_.clear();
  if (launch.times != nullptr)
    for (const HostWork& work : now_.works) times_.push_back({.step = work.step, .begin = {}, .end = {}});
  TESSERA_TRY(run_works());
  if (launch.times != nullptr) launch.times->insert(launch.times->end(), times_.begin(), times_.end());
  // After an error some have not seen where their arrays are now.
  if (!now_.have_moved) return {};
  for (HostWork& work : now_.works) work.moved = false;
  now_.have_moved = false;
  return {};
}

Result<void> HostExecutable::run_any(std::size_t index) {
  HostWork& work = now_.works[index];
  return noted(index, 0, [&]() -> Result<void> {
    if (!work.is_copy) return finished(work, run_work(index, work));
    copy(work);
    return {};
  });
}

Result<void> HostExecutable::run_works() {
  for (std::size_t i = 0; i < now_.works.size(); ++i) TESSERA_TRY(run_any(i));
  return {};
}

Result<void> HostExecutable::finished(const HostWork& work, Result<void> done) const {
  return done ? std::move(done) : std::move(done).error().at(step_of(work).span.resolve());
}

Result<void> HostExecutable::run_by_ops(const HostWork& work, RunBody run_body) const {
  std::vector<op::HostTensor> inputs;
  for (const op::Array& from : work.inputs) {
    inputs.push_back(TESSERA_TRY(op::HostTensor::allocate(from.dtype, from.shape())));
    op::copy_elements(from, inputs.back().array());
  }
  const op::InterpreterOptions options{.parameters = numbers_, .run_body = std::move(run_body)};
  const auto values = TESSERA_TRY(op::interpret(*step_of(work).function, inputs, options, binding_.sizes));
  for (std::size_t i = 0; i < work.results.size(); ++i) {
    if (values[i].shape() != work.results[i].shape())
      return Error(ErrorCode::shape, cat("result ", i, " of '", step_of(work).name(), "' has shape [",
                                         join(values[i].shape(), ", "), "], expected [",
                                         join(work.results[i].shape(), ", "), "]"));
    op::copy_elements(values[i].array(), work.results[i]);
  }
  return {};
}
