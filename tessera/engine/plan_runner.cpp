#include "tessera/engine/plan_runner.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

Result<PlanRunner> PlanRunner::create(plan::Package package, const std::shared_ptr<runtime::Device>& device) {
  auto executable = TESSERA_TRY(device->load(package.plan, runtime::MemoryPool::create()));
  return PlanRunner(std::move(package), std::move(executable));
}

Error PlanRunner::wrong_input(std::size_t i, const op::HostTensor& given) const {
  return Error(ErrorCode::shape, cat("input '", printable(package_.inputs[i]), "' is ", given.dtype(), "[",
                                     join(given.shape(), ", "), "], expected ", input(i).type));
}

Result<std::vector<std::int64_t>> PlanRunner::sizes_of(std::span<const op::HostTensor> inputs) const {
  const plan::Plan& plan = *package_.plan;
  if (inputs.size() != plan.inputs.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the plan has ", plan.inputs.size(), " inputs, got ", inputs.size()));
  std::vector<std::optional<std::int64_t>> found(plan.dims.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const op::ValueType& type = input(i).type;
    if (inputs[i].dtype() != type.dtype || inputs[i].shape().size() != type.rank())
      return wrong_input(i, inputs[i]);
    for (std::size_t axis = 0; axis < type.rank(); ++axis)
      for (std::size_t d = 0; d < plan.dims.size(); ++d)
        if (!type.shape[axis].is_constant() && type.shape[axis].expr() == plan.dims[d] && !found[d])
          found[d] = inputs[i].shape()[axis];
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < plan.dims.size(); ++d) {
    if (!found[d])
      return Error(ErrorCode::shape, cat("the size '", printable(plan.dims[d]->name),
                                         "' does not follow from the shapes of the inputs"));
    sizes.push_back(*found[d]);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t axis = 0; axis < input(i).type.rank(); ++axis)
      if (TESSERA_TRY(plan::size_of(plan, sizes, input(i).type.shape[axis])) != inputs[i].shape()[axis])
        return wrong_input(i, inputs[i]);
  return sizes;
}

std::vector<std::uint64_t> PlanRunner::parameter_bits(std::span<const double> parameters) const {
  std::vector<std::uint64_t> out;
  for (std::size_t slot = 0; slot < package_.plan->parameters.size(); ++slot) {
    const double number = slot < parameters.size() ? parameters[slot] : package_.parameters[slot];
    const bool is_float = ir::is_float(package_.plan->parameters[slot]);
    constexpr double most = 9223372036854774784.0;  // the largest double that is an i64
    const auto integer = static_cast<std::int64_t>(std::clamp(number == number ? number : 0, -most, most));
    out.push_back(is_float ? std::bit_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(integer));
  }
  return out;
}

Result<std::vector<op::HostTensor>> PlanRunner::run(std::span<const op::HostTensor> inputs,
                                                    std::span<const double> parameters) {
  const auto sizes = TESSERA_TRY(sizes_of(inputs));
  if (!is_prepared_ || sizes != sizes_) {
    std::vector<op::Layout> layouts;
    for (const op::HostTensor& tensor : inputs) layouts.push_back(tensor.array().layout);
    is_prepared_ = false;
    TESSERA_TRY(executable_->prepare(sizes, layouts));
    sizes_ = sizes;
    is_prepared_ = true;
  }
  std::vector<std::byte*> from, to;
  for (const op::HostTensor& tensor : inputs) from.push_back(tensor.array().data);
  std::vector<op::HostTensor> buffers;
  for (const plan::OutputBuffer& buffer : binding().buffers) {
    buffers.push_back(
        TESSERA_TRY(op::HostTensor::allocate(op::Dtype::u8, {std::max<std::int64_t>(buffer.bytes, 1)})));
    to.push_back(buffers.back().array().data);
  }
  const auto bits = parameter_bits(parameters);
  TESSERA_TRY(executable_->run({.inputs = from, .parameters = bits, .outputs = to}));
  std::vector<op::HostTensor> out;
  for (std::size_t i = 0; i < package_.plan->outputs.size(); ++i) {
    const plan::Place& place = binding().output(*package_.plan, i);
    const op::Dtype dtype = package_.plan->values[package_.plan->outputs[i]].type.dtype;
    out.push_back(TESSERA_TRY(op::HostTensor::allocate(dtype, place.layout.shape)));
    std::byte* data = place.where == plan::Where::input ? from[place.index] : to[place.index];
    op::copy_elements({dtype, place.layout, data}, out.back().array());
  }
  return out;
}
