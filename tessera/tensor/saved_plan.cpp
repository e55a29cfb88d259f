#include "tessera/tensor/saved_plan.h"

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/ir/number_bits.h"
#include "tessera/ir/rewrite.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/run_program.h"
#include "tessera/tensor/trace.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

ir::ExprRef constant_of(const Tensor& tensor, const op::ValueType& type, Here here) {
  const auto owner = std::make_shared<Tensor>(tensor);
  return ir::dense(ir::tensor_type(type.dtype, type.shape), Bytes(owner->bytes(here), owner));
}

/// The function with its last parameters as constants.
ir::FunctionRef with_constants(const ir::FunctionRef& function, const std::vector<Tensor>& values,
                               Here here) {
  const std::size_t kept = function->params.size() - values.size();
  std::vector<ir::ExprRef> constants;
  for (const Tensor& value : values) constants.push_back(constant_of(value, value.node()->type(), here));
  ir::FunctionParts parts{.name = "main", .dims = function->dims, .params = function->params};
  parts.params.resize(kept);  // only what a function does not bind is replaced in it
  parts.body = function->body;
  parts.results = function->results;
  const auto replaced =
      ir::replace_variables(ir::function(std::move(parts)), [&](const ir::Var& var) -> ir::ExprRef {
        for (std::size_t i = 0; i < constants.size(); ++i)
          if (function->params[kept + i].get() == &var) return constants[i];
        return {};
      });
  return Ref<const ir::Function>(static_cast<const ir::Function*>(replaced.get()));
}

PlanValue value_of(const std::string& name, const op::ValueType& type) {
  PlanValue out{name, type.dtype, {}};
  for (const op::Dim& dim : type.shape) out.shape.push_back(dim.is_constant() ? dim.value() : -1);
  return out;
}

/// Sizes that are not the same for all values of the flags are any.
void take_differences(const PlanValue& other, PlanValue& out) {
  for (std::size_t axis = 0; axis < out.shape.size(); ++axis)
    if (axis >= other.shape.size() || other.shape[axis] != out.shape[axis]) out.shape[axis] = -1;
}

/// The value, or the error as an exception: with the caller's line, also where its place is a file or a line
/// of the function that is saved. Where nobody knows the line, `path` says what was asked for.
template <class T>
T value_of_call(Here here, std::string_view call, const std::string& path, Result<T> result) {
  if (result || (!result.error().span().known() && span_of(here).known()))
    return value_at(here, std::move(result));
  if (span_of(here).known())
    throw Exception(std::move(result).error().note(cat(call, " at ", span_of(here).to_text())));
  if (path.empty()) throw Exception(std::move(result).error());
  throw Exception(std::move(result).error().note(cat(call, " ", printable(path))));
}

std::vector<PlanValue> inputs_of(const plan::Package& package) {
  const op::ValueTypes types = plan::input_types(package);
  std::vector<PlanValue> out;
  for (std::size_t i = 0; i < package.inputs.size(); ++i)
    out.push_back(value_of(package.inputs[i], types[i]));
  return out;
}

std::vector<PlanValue> outputs_of(const plan::Package& package) {
  std::vector<PlanValue> out;
  for (std::size_t i = 0; i < package.outputs.size(); ++i) {
    const auto value = [&](const plan::Program& program) {
      return value_of(package.outputs[i], program.type_of(program.outputs[i]));
    };
    out.push_back(value(package.programs.front()));
    for (const plan::Program& program : package.programs) take_differences(value(program), out.back());
  }
  return out;
}

}  // namespace

struct SavedPlan::State {
  std::shared_ptr<engine::Engine> engine;
  engine::PlanRunner runner;
  std::vector<PlanValue> inputs, outputs;
};

std::vector<Tensor> SavedPlan::operator()(std::span<const Tensor> inputs, std::span<const double> parameters,
                                          Here here) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_empty()) fail(here, cat("input ", i, " of a plan is an empty tensor"));
  const auto& dtypes = state_->runner.package().programs.front().parameters;
  SmallVector<std::uint64_t, 8> bits;
  for (std::size_t slot = 0; slot < parameters.size() && slot < dtypes.size(); ++slot)
    bits.push_back(ir::number_bits(parameters[slot], dtypes[slot]));
  return value_of_call(here, "called", {},
                       run_program(state_->runner, state_->engine, inputs, {bits.data(), bits.size()}, here));
}

const std::vector<PlanValue>& SavedPlan::inputs() const { return state_->inputs; }
const std::vector<PlanValue>& SavedPlan::outputs() const { return state_->outputs; }

SavedPlan tessera::load_plan(const std::string& path, LoadPlanOptions options, Here here) {
  auto engine = options.engine == nullptr ? engine::Engine::default_engine() : std::move(options.engine);
  auto package = value_of_call(here, "load_plan", path, plan::load(path));
  auto runner =
      value_of_call(here, "load_plan", path, engine::PlanRunner::create(std::move(package), *engine, path));
  auto inputs = inputs_of(runner.package()), outputs = outputs_of(runner.package());
  return SavedPlan(std::shared_ptr<SavedPlan::State>(
      new SavedPlan::State{std::move(engine), std::move(runner), std::move(inputs), std::move(outputs)}));
}

void tessera::detail::save_function(const std::string& path, const ir::FunctionRef& function,
                                    const std::vector<Tensor>& constants, engine::Engine& engine, Here here) {
  const ir::FunctionRef whole = with_constants(function, constants, here);
  auto planned =
      value_of_call(here, "save_plan", path, compiler::plan_program(whole, engine.device().target()));
  const auto package =
      compiler::package(*whole, {std::move(planned.program)}, std::string(engine.device().name()));
  value_of_call(here, "save_plan", path, plan::save(package, path));
}
