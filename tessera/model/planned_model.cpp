#include "tessera/model/planned_model.h"

#include <algorithm>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/plan/work.h"

using namespace tessera;
using op::HostTensor;

namespace {

/// Each doubles the number of plans.
constexpr std::size_t most_flags = 3;

/// Of one constant that is folded, though it is larger than what it is made of.
constexpr std::int64_t most_folded_bytes = std::int64_t{1} << 26;
/// Bytes that folding reads and writes, in half a second.
constexpr std::int64_t most_folded_work = std::int64_t{1} << 29;

Result<void> check_steps(const plan::Program& program) {
  for (const plan::Part& part : program.parts)
    for (const plan::Step& step : part.plan->steps)
      if (!plan::has_known_work(*part.plan, step))
        return Error(ErrorCode::unsupported, cat("a plan does not bound the work of '", step.name(), "'"));
  return {};
}

Result<engine::PlanRunner> planned(const ir::FunctionRef& function, runtime::Device& device,
                                   const onnx::Limits& limits) {
  // What is made of weights of 8 bits is computed once.
  compiler::PlanOptions options;
  options.pipeline.passes.fold_bytes = most_folded_bytes;
  options.pipeline.passes.fold_work = most_folded_work;
  auto program = TESSERA_TRY(compiler::plan_program(function, device.target(), options)).program;
  TESSERA_TRY(check_steps(program));
  return engine::PlanRunner::create(
      compiler::package(*function, std::move(program), std::string(device.name())), device,
      {.bytes = limits.total_bytes, .work = static_cast<double>(limits.work)});
}

bool is_flag(const onnx::ValueInfo& input) {
  if (input.type.kind != onnx::DeclaredType::Kind::tensor || input.type.dtype != op::Dtype::boolean ||
      !input.type.shape)
    return false;
  return std::all_of(input.type.shape->begin(), input.type.shape->end(),
                     [](const onnx::DeclaredDim& dim) { return dim == onnx::DeclaredDim(std::int64_t{1}); });
}

/// The model for one value of a flag.
Result<void> set_flag(onnx::Model& model, const onnx::ValueInfo& flag, bool value) {
  const HostTensor tensor = TESSERA_TRY(
      HostTensor::allocate(op::Dtype::boolean, op::Extents(flag.type.shape->size(), std::int64_t{1})));
  *tensor.array().data = std::byte{value};
  model.graph.initializers.push_back({flag.name, tensor, {}});
  return {};
}

bool bit(std::size_t bits, std::size_t index) { return (bits >> index & 1) != 0; }

}  // namespace

Result<PlannedModel> PlannedModel::create(const onnx::Model& model, runtime::Device& device,
                                          const onnx::Limits& limits) {
  PlannedModel out(device, limits);
  for (const onnx::ValueInfo* input : onnx::required_inputs(model)) out.inputs_.push_back(*input);
  out.file_ = model.file;
  auto whole = out.add_plan(model);
  if (whole) return out;
  for (std::size_t i = 0; i < out.inputs_.size(); ++i)
    if (is_flag(out.inputs_[i])) out.flags_.push_back(i);
  if (whole.error().code() != ErrorCode::unsupported || out.flags_.empty() || out.flags_.size() > most_flags)
    return std::move(whole).error();
  TESSERA_TRY(out.plan_by_flags(model));
  return out;
}

Result<void> PlannedModel::add_plan(const onnx::Model& model) {
  Plan plan;
  plan.function = TESSERA_TRY(onnx::import_function(model, limits_));
  if (!plan::has_known_work(*plan.function)) TESSERA_TRY(make(plan));
  plans_.push_back(std::move(plan));
  return {};
}

Result<void> PlannedModel::make(Plan& plan) const {
  if (plan.runner) return {};
  plan.runner = TESSERA_TRY(planned(plan.function, *device_, limits_));
  plan.runner->set_profiling(profiling_);
  plan.function = nullptr;
  return {};
}

void PlannedModel::set_profiling(ProfilingLevel level) {
  profiling_ = level;
  for (Plan& plan : plans_)
    if (plan.runner) plan.runner->set_profiling(level);
}

engine::Profile PlannedModel::profile() const {
  return plans_[last_].runner ? plans_[last_].runner->profile() : engine::Profile();
}

Result<void> PlannedModel::plan_by_flags(const onnx::Model& model) {
  for (std::size_t bits = 0; bits < std::size_t{1} << flags_.size(); ++bits) {
    onnx::Model one = model;  // shares the weights
    for (std::size_t f = 0; f < flags_.size(); ++f)
      TESSERA_TRY(set_flag(one, inputs_[flags_[f]], bit(bits, f)));
    TESSERA_TRY(add_plan(one));
  }
  return {};
}

Result<std::vector<onnx::DataValue>> PlannedModel::run(std::span<const onnx::DataValue> inputs) {
  if (inputs.size() != inputs_.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the model takes ", inputs_.size(), " inputs, got ", inputs.size()), {file_, 0, 0});
  std::vector<HostTensor> tensors;
  std::size_t bits = 0, flag = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != onnx::DataValue::Kind::tensor)
      return Error(ErrorCode::unsupported, cat("input ", onnx::shown(inputs_[i].name), " is no tensor"),
                   {file_, 0, 0});
    const HostTensor& tensor = inputs[i].tensors[0];
    auto fits = onnx::check_input(inputs_[i], tensor.dtype(), tensor.shape());
    if (!fits) return std::move(fits).error().at({file_, 0, 0});
    if (flag == flags_.size() || flags_[flag] != i) {
      tensors.push_back(tensor);
      continue;
    }
    bits |= std::size_t{*tensor.array().data != std::byte{0}} << flag++;
  }
  TESSERA_TRY(make(plans_[bits]));
  last_ = bits;
  std::vector<onnx::DataValue> out;
  for (HostTensor& result : TESSERA_TRY(plans_[bits].runner->run(tensors)))
    out.push_back({onnx::DataValue::Kind::tensor, {std::move(result)}});
  return out;
}
