#include "tessera/compile/lower.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/size_conditions.h"

using namespace tessera;
using namespace tessera::compiler;
using plan::Plan;
using plan::Step;
using plan::StepKind;
using plan::Value;
using plan::ValueId;
using plan::ValueKind;

namespace {

/// The variables of the function that an expression or a region reads: those of its own operands; bodies are
/// closed.
std::vector<Ref<ir::Var>> variables_of(const ir::Expr& expr) {
  std::vector<Ref<ir::Var>> out;
  const auto add = [&](const ir::ExprRef& operand) {
    if (operand == nullptr) return;
    for (const ir::Node* node : ir::post_order(*operand))
      if (const auto* var = ir::as<ir::Var>(*node)) {
        const bool known = std::any_of(out.begin(), out.end(), [&](const auto& v) { return v.get() == var; });
        if (!known) out.push_back(Ref<ir::Var>(const_cast<ir::Var*>(var)));
      }
  };
  const auto add_all = [&](const std::vector<ir::ExprRef>& operands) {
    for (const ir::ExprRef& operand : operands) add(operand);
  };
  if (const auto* invoke = ir::as<ir::Invoke>(expr)) {
    add_all(invoke->dims);
    add_all(invoke->args);
  } else if (const auto* branch = ir::as<ir::IfRegion>(expr)) {
    add(branch->condition);
    add_all(branch->dims);
    add_all(branch->captures);
  } else if (const auto* choice = ir::as<ir::SwitchRegion>(expr)) {
    add(choice->index);
    add_all(choice->dims);
    add_all(choice->captures);
  } else if (const auto* loop = ir::as<ir::WhileRegion>(expr)) {
    add_all(loop->inits);
    add_all(loop->dims);
    add_all(loop->captures);
  } else if (const auto* counted = ir::as<ir::ForRegion>(expr)) {
    add(counted->count);
    add_all(counted->inits);
    add_all(counted->dims);
    add_all(counted->captures);
  } else {
    add(ir::ExprRef(&expr));
  }
  return out;
}

std::string_view region_name(const ir::Expr& expr) {
  switch (expr.kind()) {
    case ir::NodeKind::if_region:
      return "if";
    case ir::NodeKind::switch_region:
      return "switch";
    case ir::NodeKind::while_region:
      return "while";
    case ir::NodeKind::for_region:
      return "for";
    case ir::NodeKind::scalar_op:
      return "scalar";
    default:
      return "call";
  }
}

class Lowering {
 public:
  explicit Lowering(const ir::Function& function) : function_(function) {}

  Result<Plan> run(const TiledFunction& tiled) {
    plan_.dims = function_.dims;
    for (const auto& param : function_.params) TESSERA_TRY(add_input(*param));
    for (const TiledPart& part : tiled.parts) {
      const ir::Assign& first = *function_.body[part.statements[0]];
      auto done = part.ops != nullptr ? add_fused(part) : add_statement(first);
      if (!done) return std::move(done).error().at(first.span().resolve());
    }
    for (const ir::ExprRef& result : function_.results) TESSERA_TRY(add_output(*result));
    if (!plan_.dims.empty()) TESSERA_TRY(plan::add_size_conditions(plan_));
    return std::move(plan_);
  }

 private:
  ValueId add_value(Value value) {
    plan_.values.push_back(std::move(value));
    return static_cast<ValueId>(plan_.values.size() - 1);
  }

  Result<void> add_input(const ir::Var& param) {
    const auto type = op::value_type(*param.type);
    if (!type) return Error(ErrorCode::unsupported, cat("input '", ir::describe(param), "' is a tuple"));
    const auto index = static_cast<std::uint32_t>(plan_.inputs.size());
    plan_.inputs.push_back(add_value({.kind = ValueKind::input, .type = *type, .index = index}));
    values_[&param] = plan_.inputs.back();
    return {};
  }

  Result<void> add_statement(const ir::Assign& statement) {
    const ir::Expr& value = *statement.value;
    if (ir::is<ir::Tuple>(value) || ir::is<ir::Item>(value))
      return Error(ErrorCode::unsupported, "a plan has no tuples");
    if (const auto* call = ir::as<ir::Call>(value)) return add_call(*call, statement);
    const bool is_scalar = ir::is<ir::ScalarOp>(value);
    if (is_scalar ? !depends_on_sizes_alone(value)
                  : region_name(value) != "call" || ir::is<ir::Invoke>(value))
      return add_region(value, statement);
    values_[statement.targets[0].get()] = TESSERA_TRY(operand(value));
    return {};
  }

  Result<void> add_call(const ir::Call& call, const ir::Assign& statement) {
    Step step{.kind = StepKind::call, .card = op::find_card(call.op), .span = statement.span()};
    if (step.card == nullptr)
      return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
    step.attributes = TESSERA_TRY(op::complete_attributes(*step.card, call.attrs));
    for (const ir::ExprRef& arg : call.args) step.inputs.push_back(TESSERA_TRY(operand(*arg)));
    return add_step(std::move(step), statement);
  }

  /// A kernel, or what the device has a library for.
  Result<void> add_fused(const TiledPart& part) {
    if (part.ops->results.empty()) return {};  // nobody reads anything of it
    Step step{.kind = part.kernel == nullptr ? StepKind::library : StepKind::kernel,
              .function = part.ops,
              .kernel = part.kernel};
    step.span = function_.body[part.statements[0]]->span();
    for (const ir::ExprRef& input : part.inputs) step.inputs.push_back(TESSERA_TRY(operand(*input)));
    for (const auto& statement : part.ops->body)
      for (const ir::ExprRef& arg : static_cast<const ir::Call&>(*statement->value).args)
        declare_parameters(*arg);
    const auto index = static_cast<std::uint32_t>(plan_.steps.size());
    for (const ir::ExprRef& result : part.ops->results) {
      const auto& target = static_cast<const ir::Var&>(*result);
      step.results.push_back(
          add_value({.kind = ValueKind::computed, .type = *op::value_type(*target.type), .index = index}));
      values_[&target] = step.results.back();
    }
    plan_.steps.push_back(std::move(step));
    return {};
  }

  /// Whether no size depends on data: a plan knows all sizes before it runs.
  [[nodiscard]] bool has_known_sizes(const ir::Type& type) const {
    const auto* tensor = ir::as<ir::TensorType>(type);
    if (tensor == nullptr) return ir::is<ir::ScalarType>(type);
    return std::all_of(tensor->shape.begin(), tensor->shape.end(), [&](const ir::Dim& dim) {
      if (dim.is_constant()) return true;
      const auto nodes = ir::post_order(*dim.expr());
      return std::all_of(nodes.begin(), nodes.end(), [&](const ir::Node* node) {
        const auto* var = ir::as<ir::Var>(*node);
        return var == nullptr || is_size(*var);
      });
    });
  }

  /// A region or a scalar becomes a function of the variables it reads, so that the step can run on its own.
  Result<void> add_region(const ir::Expr& region, const ir::Assign& statement) {
    Step step{.kind = StepKind::function, .span = statement.span()};
    ir::FunctionParts parts{.name = std::string(region_name(region)), .dims = function_.dims};
    for (const Ref<ir::Var>& var : variables_of(region)) {
      if (is_size(*var)) continue;
      step.inputs.push_back(TESSERA_TRY(operand(*var)));
      parts.params.push_back(var);
    }
    parts.body = {Ref<ir::Assign>(const_cast<ir::Assign*>(&statement))};
    for (const auto& target : statement.targets) parts.results.push_back(target);
    step.function = ir::function(std::move(parts), statement.span());
    // Numbers that bodies read are given at each launch too.
    for (const ir::Node* node : ir::post_order(*step.function))
      if (const auto* parameter = ir::as<ir::Param>(*node)) declare_parameter(*parameter);
    return add_step(std::move(step), statement);
  }

  Result<void> add_step(Step step, const ir::Assign& statement) {
    const auto index = static_cast<std::uint32_t>(plan_.steps.size());
    for (const auto& target : statement.targets) {
      const auto type = op::value_type(*target->type);
      if (!type) return Error(ErrorCode::unsupported, "a plan has no tuples");
      if (!has_known_sizes(*target->type))
        return Error(ErrorCode::unsupported, cat("the size of ", *type, " depends on data"));
      step.results.push_back(add_value({.kind = ValueKind::computed, .type = *type, .index = index}));
      values_[target.get()] = step.results.back();
    }
    plan_.steps.push_back(std::move(step));
    return {};
  }

  /// An output has memory of its own, or is a view of an input.
  Result<void> add_output(const ir::Expr& result) {
    ValueId value = TESSERA_TRY(operand(result));
    const ValueKind kind = plan_.values[value].kind;
    if (kind != ValueKind::computed && kind != ValueKind::input) {
      const auto step = static_cast<std::uint32_t>(plan_.steps.size());
      const ValueId copy =
          add_value({.kind = ValueKind::computed, .type = plan_.values[value].type, .index = step});
      plan_.steps.push_back({.kind = StepKind::copy, .inputs = {value}, .results = {copy}});
      value = copy;
    }
    plan_.outputs.push_back(value);
    return {};
  }

  [[nodiscard]] bool is_size(const ir::Var& var) const {
    return std::any_of(function_.dims.begin(), function_.dims.end(),
                       [&](const auto& dim) { return dim.get() == &var; });
  }

  Result<ValueId> operand(const ir::Expr& expr) {
    if (const auto* var = ir::as<ir::Var>(expr))
      if (const auto known = values_.find(var); known != values_.end()) return known->second;
    if (const auto* parameter = ir::as<ir::Param>(expr)) return parameter_value(*parameter);
    if (ir::is<ir::Dense>(expr)) return dense_constant(expr);
    if (!depends_on_sizes_alone(expr)) return scalar(expr);
    return expr.has_variables() ? size(expr) : constant(expr);
  }

  void declare_parameter(const ir::Param& parameter) {
    if (plan_.parameters.size() <= parameter.slot)
      plan_.parameters.resize(parameter.slot + 1, op::Dtype::f32);
    plan_.parameters[parameter.slot] = parameter.dtype;
  }
  void declare_parameters(const ir::Expr& expr) {
    if (ir::is<ir::Var>(expr)) return;
    for (const ir::Node* node : ir::post_order(expr))
      if (const auto* parameter = ir::as<ir::Param>(*node)) declare_parameter(*parameter);
  }

  ValueId parameter_value(const ir::Param& parameter) {
    declare_parameter(parameter);
    return add_value({.kind = ValueKind::parameter, .type = {parameter.dtype, {}}, .index = parameter.slot});
  }

  /// Large ones are not copied twice.
  Result<ValueId> dense_constant(const ir::Expr& expr) {
    if (const auto known = constants_.find(&expr); known != constants_.end()) return known->second;
    return constants_[&expr] = TESSERA_TRY(constant(expr));
  }

  Result<ValueId> constant(const ir::Expr& expr) {
    const auto value = constant_tensor(expr);
    if (!value)
      return Error(ErrorCode::invalid_argument, cat("'", ir::describe(expr), "' has no value here"));
    const auto index = static_cast<std::uint32_t>(plan_.constants.size());
    plan_.constants.push_back(*value);
    op::ValueType type{value->dtype(), {}};
    for (const std::int64_t size : value->shape()) type.shape.push_back(size);
    return add_value({.kind = ValueKind::constant, .type = std::move(type), .index = index});
  }

  [[nodiscard]] bool depends_on_sizes_alone(const ir::Expr& expr) const {
    const auto nodes = ir::post_order(expr);
    return std::all_of(nodes.begin(), nodes.end(), [&](const ir::Node* node) {
      const auto* var = ir::as<ir::Var>(*node);
      return !ir::is<ir::Param>(*node) && (var == nullptr || is_size(*var));
    });
  }

  /// A scalar that is written among the operands and depends on values or parameters: a step of its own.
  Result<ValueId> scalar(const ir::Expr& expr) {
    const auto dtype = ir::scalar_dtype(expr);
    if (!dtype) return Error(ErrorCode::unsupported, cat("'", ir::describe(expr), "' is no value of a plan"));
    const Ref<ir::Var> target = ir::variable("", ir::scalar_type(*dtype));
    TESSERA_TRY(add_region(expr, *ir::assign({target}, ir::ExprRef(&expr))));
    return values_.at(target.get());
  }

  Result<ValueId> size(const ir::Expr& expr) {
    if (ir::scalar_dtype(expr) != op::Dtype::i64)
      return Error(ErrorCode::unsupported, cat("'", ir::describe(expr), "' is no size"));
    return add_value({.kind = ValueKind::size,
                      .type = {op::Dtype::i64, {}},
                      .size = op::Dim(ir::ExprRef(const_cast<ir::Expr*>(&expr)))});
  }

  const ir::Function& function_;
  Plan plan_;
  std::unordered_map<const ir::Var*, ValueId> values_;
  std::unordered_map<const ir::Expr*, ValueId> constants_;
};

}  // namespace

Result<plan::Plan> compiler::lower(const ir::Function& function, const TiledFunction& tiled) {
  return Lowering(function).run(tiled);
}
