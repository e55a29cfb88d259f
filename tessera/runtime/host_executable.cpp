#include "tessera/runtime/host_executable.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::runtime;
using plan::Place;
using plan::StepKind;
using plan::Where;

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
  work_.clear();
  addresses_.clear();
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
  work_.push_back(std::move(work));
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

/// A steady loop sees the same addresses again and again: then nothing is to be done.
void HostExecutable::follow_addresses(const Launch& launch) {
  const std::size_t inputs = launch.inputs.size();
  const bool is_known = addresses_.size() == inputs + launch.outputs.size() &&
                        std::equal(launch.inputs.begin(), launch.inputs.end(), addresses_.begin()) &&
                        std::equal(launch.outputs.begin(), launch.outputs.end(),
                                   addresses_.begin() + static_cast<std::ptrdiff_t>(inputs));
  if (is_known && !addresses_.empty()) return;
  for (HostWork& work : work_) set_addresses(work, launch);
  has_moved_ = true;
  addresses_changed();
  addresses_.assign(launch.inputs.begin(), launch.inputs.end());
  addresses_.insert(addresses_.end(), launch.outputs.begin(), launch.outputs.end());
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
    for (const HostWork& work : work_) times_.push_back({.step = work.step, .begin = {}, .end = {}});
  TESSERA_TRY(run_works());
  if (launch.times != nullptr) launch.times->insert(launch.times->end(), times_.begin(), times_.end());
  // After an error some have not seen where their arrays are now.
  if (!has_moved_) return {};
  for (HostWork& work : work_) work.moved = false;
  has_moved_ = false;
  return {};
}

Result<void> HostExecutable::run_any(std::size_t index) {
  HostWork& work = work_[index];
  return noted(index, 0, [&]() -> Result<void> {
    if (!work.is_copy) return finished(work, run_work(index, work));
    copy(work);
    return {};
  });
}

Result<void> HostExecutable::run_works() {
  for (std::size_t i = 0; i < work_.size(); ++i) TESSERA_TRY(run_any(i));
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
