#include "tessera/engine/op_compiler.h"

#include <algorithm>

#include "tessera/base/memory_layout.h"
#include "tessera/base/text.h"
#include "tessera/op/bound_call.h"

using namespace tessera;
using namespace tessera::engine;
using plan::Place;
using plan::Where;

namespace {

/// What a run may hold of its own: temporary values, and results until they can go where they belong.
std::uint64_t own_bytes(const plan::Plan& plan, const plan::Binding& binding) {
  std::uint64_t out = binding.memory.bytes;
  for (const auto& buffer : binding.buffers)
    out = saturating_sum(out, static_cast<std::uint64_t>(buffer.bytes));
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    if (const Place& place = binding.output(plan, i); place.where == Where::input)
      out = saturating_sum(out, static_cast<std::uint64_t>(op::element_count(place.layout.shape)) *
                                    ir::size_of(plan.values[plan.outputs[i]].type.dtype));
  return out;
}

/// A plan on a device. Results go where they belong at once if nothing still reads what lies there.
class PlanProgram final : public description::OpProgram {
 public:
  PlanProgram(std::shared_ptr<runtime::Device> device, plan::PlanRef plan,
              std::unique_ptr<runtime::Executable> executable)
      : device_(std::move(device)),
        plan_(std::move(plan)),
        executable_(std::move(executable)),
        staging_(executable_->binding().buffers.size()) {}

  [[nodiscard]] std::uint64_t bytes() const override { return own_bytes(*plan_, executable_->binding()); }

  Result<void> run(std::span<const op::Array> inputs, std::span<const std::uint64_t> numbers,
                   std::span<const op::Array> results) override {
    inputs_.clear();
    for (const op::Array& input : inputs) inputs_.push_back(input.data);
    choose_outputs(inputs, results);
    TESSERA_TRY(executable_->run({.inputs = inputs_, .parameters = numbers, .outputs = outputs_}));
    return copy_results(results);
  }

 private:
  /// A result is computed in its own memory, unless an input lies there or the plan lays it out otherwise.
  void choose_outputs(std::span<const op::Array> inputs, std::span<const op::Array> results) {
    outputs_.assign(staging_.size(), nullptr);
    is_copied_.assign(results.size(), true);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Place& place = executable_->binding().output(*plan_, i);
      if (place.where != Where::output || outputs_[place.index] != nullptr) continue;
      const bool is_read = std::any_of(inputs.begin(), inputs.end(), [&](const op::Array& input) {
        return op::overlap(input, results[i]);
      });
      const auto bytes = results[i].size() * static_cast<std::int64_t>(ir::size_of(results[i].dtype));
      const bool fits = executable_->binding().buffers[place.index].bytes <= bytes;
      if (is_read || !fits || place.layout != op::contiguous(results[i].shape())) continue;
      outputs_[place.index] = results[i].data;
      is_copied_[i] = false;
    }
    for (std::size_t i = 0; i < staging_.size(); ++i)
      if (outputs_[i] == nullptr) outputs_[i] = staging(i);
  }

  /// Memory for a buffer that no result can lie in, from the first run that asks for it.
  std::byte* staging(std::size_t buffer) {
    staging_[buffer].resize(static_cast<std::size_t>(executable_->binding().buffers[buffer].bytes));
    return staging_[buffer].data();
  }

  /// What is a part of an input is taken out before anything is written over inputs.
  Result<void> copy_results(std::span<const op::Array> results) {
    std::vector<op::HostTensor> parts(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Place& place = executable_->binding().output(*plan_, i);
      if (place.where != Where::input) continue;
      parts[i] = TESSERA_TRY(op::HostTensor::allocate(results[i].dtype, results[i].shape()));
      op::copy_elements({results[i].dtype, place.layout, inputs_[place.index]}, parts[i].array());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Place& place = executable_->binding().output(*plan_, i);
      if (place.where == Where::input)
        op::copy_elements(parts[i].array(), results[i]);
      else if (is_copied_[i])
        op::copy_elements({results[i].dtype, place.layout, outputs_[place.index]}, results[i]);
    }
    return {};
  }

  std::shared_ptr<runtime::Device> device_;
  plan::PlanRef plan_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<std::vector<std::byte>> staging_;  // by buffer of the binding; empty: not needed so far
  // Of the run at hand.
  std::vector<std::byte*> inputs_, outputs_;
  std::vector<bool> is_copied_;
};

class DeviceCompiler final : public description::OpCompiler {
 public:
  DeviceCompiler(std::shared_ptr<runtime::Device> device, compiler::PlanOptions options)
      : device_(std::move(device)), options_(std::move(options)) {}

  Result<std::shared_ptr<description::OpProgram>> compile(const ir::FunctionRef& function,
                                                          std::uint64_t memory) override {
    const auto planned = TESSERA_TRY(compiler::plan_function(function, device_->target(), options_));
    return load_op_program(device_, planned.plan, pool_, memory);
  }

 private:
  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::MemoryPool> pool_ = runtime::MemoryPool::create();
  compiler::PlanOptions options_;
};

}  // namespace

std::shared_ptr<description::OpCompiler> tessera::engine::make_op_compiler(
    std::shared_ptr<runtime::Device> device, compiler::PlanOptions options) {
  return std::make_shared<DeviceCompiler>(std::move(device), std::move(options));
}

Result<std::shared_ptr<description::OpProgram>> tessera::engine::load_op_program(
    const std::shared_ptr<runtime::Device>& device, const plan::PlanRef& plan,
    const std::shared_ptr<runtime::MemoryPool>& pool, std::uint64_t memory) {
  const std::vector<op::Layout> layouts = TESSERA_TRY(plan::contiguous_inputs(*plan, {}));
  const auto planned = TESSERA_TRY(device->plan_memory(plan, {}, layouts));
  if (const std::uint64_t bytes = own_bytes(*plan, planned); bytes > memory)
    return Error(ErrorCode::memory, cat("the program needs ", bytes, " bytes, there are ", memory));
  auto executable = TESSERA_TRY(device->load(plan, pool));
  TESSERA_TRY(executable->prepare({}, layouts));
  return std::shared_ptr<description::OpProgram>(
      std::make_shared<PlanProgram>(device, plan, std::move(executable)));
}
