#include "tessera/runtime/reference/reference_executable.h"

#include <algorithm>
#include <bit>

#include "tessera/op/interpreter.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::runtime;
using plan::Place;
using plan::StepKind;
using plan::Where;

namespace {

/// Writes a number, given as bits, as its dtype stores it.
void store_number(std::uint64_t bits, op::Dtype dtype, std::uint64_t& cell) {
  auto* at = reinterpret_cast<std::byte*>(&cell);
  if (ir::is_float(dtype)) {
    const auto value = std::bit_cast<double>(bits);
    op::storer<double>(dtype)(at, 0, 1, 1, &value);
  } else {
    const op::SignedWide value = static_cast<std::int64_t>(bits);
    op::storer<op::SignedWide>(dtype)(at, 0, 1, 1, &value);
  }
}

}  // namespace

Result<void> ReferenceExecutable::prepare(std::span<const std::int64_t> sizes,
                                          std::span<const op::Layout> inputs) {
  plan::Binding binding = TESSERA_TRY(plan::bind(*plan_, sizes, inputs));
  const auto bytes = static_cast<std::size_t>(binding.memory.bytes);
  if (scratch_ == nullptr || scratch_->size() < bytes) scratch_ = TESSERA_TRY(pool_->allocate(bytes));
  binding_ = std::move(binding);
  cells_.assign(plan_->parameters.size(), 0);
  for (const std::int64_t size : binding_.size_cells) cells_.push_back(static_cast<std::uint64_t>(size));
  work_.clear();
  for (plan::StepId s = 0; s < plan_->steps.size(); ++s)
    if (!binding_.is_view[s]) add_work(s);
  return {};
}

void ReferenceExecutable::add_work(plan::StepId s) {
  Work work{.step = s};
  const plan::Step& step = plan_->steps[s];
  for (const plan::ValueId v : step.inputs)
    work.inputs.push_back({plan_->values[v].type.dtype, binding_.places[v].layout, nullptr});
  for (const plan::ValueId v : step.results)
    work.results.push_back({plan_->values[v].type.dtype, binding_.places[v].layout, nullptr});
  work_.push_back(std::move(work));
}

std::byte* ReferenceExecutable::address(plan::ValueId value, const Launch& launch) const {
  const Place& place = binding_.places[value];
  switch (place.where) {
    case Where::input:
      return launch.inputs[place.index];
    case Where::output:
      return launch.outputs[place.index];
    case Where::constant:
      return plan_->constants[place.index].array().data;
    case Where::cell:
      return reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(&cells_[place.index]));
    case Where::scratch:
      return scratch_->data() + place.byte;
  }
  return nullptr;
}

void ReferenceExecutable::set_parameters(const Launch& launch) {
  for (std::size_t i = 0; i < plan_->parameters.size(); ++i)
    store_number(launch.parameters[i], plan_->parameters[i], cells_[i]);
}

Result<void> ReferenceExecutable::run(const Launch& launch) {
  set_parameters(launch);
  for (Work& work : work_) {
    auto done = run(work, launch);
    if (!done) return std::move(done).error().at(plan_->steps[work.step].span.resolve());
  }
  return {};
}

Result<void> ReferenceExecutable::run(Work& work, const Launch& launch) {
  const plan::Step& step = plan_->steps[work.step];
  for (std::size_t i = 0; i < step.inputs.size(); ++i) work.inputs[i].data = address(step.inputs[i], launch);
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    op::Array& result = work.results[i];
    result.data = address(step.results[i], launch);
    // Kernels write into zeros.
    std::fill_n(result.data, static_cast<std::size_t>(result.size()) * ir::size_of(result.dtype),
                std::byte{0});
  }
  if (step.kind == StepKind::function) return run_function(step, work);
  if (step.kind == StepKind::copy) {
    op::copy_elements(work.inputs[0], work.results[0]);
    return {};
  }
  const op::CallInfo call(*step.card, binding_.input_types[work.step], binding_.attributes[work.step]);
  return op::run_reference(call, work.inputs, work.results);
}

Result<void> ReferenceExecutable::run_function(const plan::Step& step, const Work& work) const {
  std::vector<op::HostTensor> inputs;
  for (const op::Array& from : work.inputs) {
    inputs.push_back(TESSERA_TRY(op::HostTensor::allocate(from.dtype, from.shape())));
    op::copy_elements(from, inputs.back().array());
  }
  const auto values = TESSERA_TRY(op::interpret(*step.function, inputs, {}, binding_.sizes));
  for (std::size_t i = 0; i < work.results.size(); ++i) op::copy_elements(values[i].array(), work.results[i]);
  return {};
}
