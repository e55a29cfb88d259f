#include "tessera/model/planned_function.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/text.h"

#include "tessera/op/interpreter.h"
#include "tessera/plan/work.h"

using namespace tessera;
using op::HostTensor;

Result<PlannedFunction> PlannedFunction::create(const ir::FunctionRef& function, runtime::Device& device,
                                                const compiler::PlanOptions& options, PlanLimits limits) {
  PlannedFunction out;
  out.function_ = function;
  out.plan_ = TESSERA_TRY(compiler::plan_function(function, device.target(), options)).plan;
  const auto pool = runtime::MemoryPool::create();
  pool->set_limit(static_cast<std::uint64_t>(limits.bytes));
  out.executable_ = TESSERA_TRY(device.load(out.plan_, pool));
  out.limits_ = limits;
  return out;
}

/// Symbols are sizes of parameters; those that are not cannot be known.
Result<std::vector<std::int64_t>> PlannedFunction::sizes_of(std::span<const HostTensor> inputs) const {
  std::vector<std::int64_t> sizes(function_->dims.size(), -1);
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    const auto* type = ir::as<ir::TensorType>(function_->params[p]->type);
    if (type == nullptr || type->shape.size() != inputs[p].shape().size())
      return Error(ErrorCode::shape, cat("input ", p, " has rank ", inputs[p].shape().size()));
    for (std::size_t a = 0; a < type->shape.size(); ++a) {
      if (type->shape[a].is_constant()) continue;
      const auto* symbol = ir::as<ir::Var>(*type->shape[a].expr());
      for (std::size_t d = 0; d < sizes.size(); ++d)
        if (function_->dims[d].get() == symbol && sizes[d] < 0) sizes[d] = inputs[p].shape()[a];
    }
  }
  if (std::find(sizes.begin(), sizes.end(), -1) != sizes.end())
    return Error(ErrorCode::unsupported, "a size does not follow from the inputs");
  return sizes;
}

Result<void> PlannedFunction::prepare(std::span<const HostTensor> inputs) {
  if (inputs.size() != function_->params.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the function takes ", function_->params.size(), " inputs, got ", inputs.size()));
  const auto has_shape = [](const HostTensor& tensor, const op::Extents& shape) {
    return tensor.shape() == shape;
  };
  if (is_prepared_ && std::equal(inputs.begin(), inputs.end(), shapes_.begin(), shapes_.end(), has_shape))
    return {};
  const auto sizes = TESSERA_TRY(sizes_of(inputs));
  std::vector<op::Layout> layouts;
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    layouts.push_back(inputs[p].array().layout);
    const op::ValueType& type = plan_->values[plan_->inputs[p]].type;
    if (type.dtype != inputs[p].dtype())
      return Error(ErrorCode::shape, cat("input ", p, " is ", inputs[p].dtype(), ", expected ", type.dtype));
    for (std::size_t a = 0; a < type.shape.size(); ++a)
      if (TESSERA_TRY(plan::size_of(*plan_, sizes, type.shape[a])) != inputs[p].shape()[a])
        return Error(ErrorCode::shape, cat("input ", p, " has size ", inputs[p].shape()[a], " along axis ", a,
                                           ", expected ", type.shape[a]));
  }
  TESSERA_TRY(check_work(sizes));
  is_prepared_ = false;
  TESSERA_TRY(executable_->prepare(sizes, layouts));
  shapes_.clear();
  for (const HostTensor& input : inputs) shapes_.push_back(input.shape());
  is_prepared_ = true;
  return {};
}

Result<void> PlannedFunction::check_work(std::span<const std::int64_t> sizes) const {
  const auto by_step = TESSERA_TRY(plan::work_by_step(*plan_, sizes));
  const double work = std::accumulate(by_step.begin(), by_step.end(), 0.0);
  if (work <= limits_.work) return {};
  return Error(ErrorCode::limit,
               cat("takes about ", work, " multiply-adds, more than the limit of ", limits_.work));
}

Result<std::vector<HostTensor>> PlannedFunction::run(std::span<const HostTensor> inputs) {
  TESSERA_TRY(prepare(inputs));
  std::vector<std::byte*> in, out;
  std::vector<HostTensor> buffers;
  for (const HostTensor& input : inputs) in.push_back(input.array().data);
  for (const plan::OutputBuffer& buffer : executable_->binding().buffers) {
    buffers.push_back(TESSERA_TRY(HostTensor::allocate(op::Dtype::u8, {buffer.bytes})));
    out.push_back(buffers.back().array().data);
  }
  TESSERA_TRY(executable_->run({.inputs = in, .parameters = {}, .outputs = out}));
  std::vector<HostTensor> results;
  for (std::size_t i = 0; i < plan_->outputs.size(); ++i) results.push_back(output(i, inputs, buffers));
  return results;
}

/// Without gaps: a view is copied.
HostTensor PlannedFunction::output(std::size_t i, std::span<const HostTensor> inputs,
                                   std::span<const HostTensor> buffers) const {
  const plan::Place& place = executable_->binding().output(*plan_, i);
  const HostTensor& owner = place.where == plan::Where::input ? inputs[place.index] : buffers[place.index];
  const op::Dtype dtype = plan_->values[plan_->outputs[i]].type.dtype;
  if (place.layout.is_contiguous() && place.layout.offset == 0 && place.where == plan::Where::output)
    return HostTensor::wrap(dtype, place.layout.shape, owner.array().data,
                            std::make_shared<HostTensor>(owner));
  HostTensor out = value_or_throw(HostTensor::allocate(dtype, place.layout.shape));
  op::copy_elements({dtype, place.layout, owner.array().data}, out.array());
  return out;
}

Result<std::vector<HostTensor>> tessera::run_function(const ir::FunctionRef& function,
                                                      std::span<const HostTensor> inputs,
                                                      runtime::Device& device) {
  auto planned = PlannedFunction::create(function, device);
  if (planned) return planned->run(inputs);
  if (planned.error().code() != ErrorCode::unsupported) return std::move(planned).error();
  return op::interpret(*function, inputs);
}
