#include <cmath>

#include "tessera/ir/node_table.h"
#include "tessera/ir/walk.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tests/differential/custom_ops.h"
#include "tests/differential/runs.h"
#include "tests/support/compare.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

using EngineRef = std::shared_ptr<engine::Engine>;

Tensor tensor_of(const op::HostTensor& host, const EngineRef& engine) {
  return from_bytes({host.array().data, host.byte_size()}, {host.shape().begin(), host.shape().end()},
                    {.dtype = host.dtype(), .engine = engine});
}

op::HostTensor host_of(const Tensor& tensor) {
  const auto shape = tensor.shape();
  const op::HostTensor out =
      value_or_throw(op::HostTensor::allocate(tensor.dtype(), op::Extents(shape.begin(), shape.end())));
  const auto bytes = tensor.bytes();
  std::copy(bytes.begin(), bytes.end(), out.array().data);
  return out;
}

/// Which ops are recorded.
enum class Ops : std::uint8_t {
  catalogue,  ///< those of the program
  twins,      ///< ops of the program's own in their place, where there are such
};

/// Records a function as a person would write it with tensors.
class LazyRun {
 public:
  LazyRun(const ir::Function& function, std::span<const double> parameters, const EngineRef& engine,
          Ops ops = Ops::catalogue)
      : function_(function), parameters_(parameters), engine_(engine), ops_(ops) {}

  Tensors operator()(const Tensors& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[*function_.params[i]] = {inputs[i]};
    for (const auto& statement : function_.body) {
      Tensors results = value(*statement->value);
      if (ir::is<ir::Tuple>(statement->value)) {
        values_[*statement->targets[0]] = std::move(results);
        continue;
      }
      for (std::size_t i = 0; i < results.size(); ++i) values_[*statement->targets[i]] = {results[i]};
    }
    return operands(function_.results);
  }

 private:
  // ---- operands

  std::optional<op::ScalarValue> scalar(const ir::Expr& operand) const {
    return op::evaluate_scalar(operand, [&](const ir::Expr& leaf) -> std::optional<op::ScalarValue> {
      const auto* param = ir::as<ir::Param>(leaf);
      if (param == nullptr) return std::nullopt;
      const double value = parameters_[param->slot];
      return ir::is_float(param->dtype) ? op::ScalarValue{param->dtype, value, 0}
                                        : op::ScalarValue{param->dtype, 0, static_cast<std::int64_t>(value)};
    });
  }

  Tensor operand(const ir::Expr& expr) {
    if (ir::is<ir::Var>(expr)) return values_.find(expr)->front();
    if (const auto* dense = ir::as<ir::Dense>(expr)) {
      Shape shape;
      for (const ir::Dim& dim : dense->type->shape) shape.push_back(dim.value());
      return from_bytes(dense->data.span(), shape, {.dtype = dense->type->dtype, .engine = engine_});
    }
    const auto value = scalar(expr);
    TESSERA_CHECK(value.has_value(), "an operand has no value");
    op::HostTensor out = value_or_throw(op::HostTensor::allocate(value->dtype, {}));
    if (ir::is_float(value->dtype)) {
      op::storer<double>(value->dtype)(out.array().data, 0, 1, 1, &value->number);
    } else {
      const op::SignedWide integer = value->integer;
      op::storer<op::SignedWide>(value->dtype)(out.array().data, 0, 1, 1, &integer);
    }
    return tensor_of(out, engine_);
  }

  Tensors operands(const std::vector<ir::ExprRef>& list) {
    Tensors out;
    for (const auto& one : list) out.push_back(operand(*one));
    return out;
  }

  // ---- statements

  Tensors value(const ir::Expr& expr) {
    switch (expr.kind()) {
      case ir::NodeKind::call:
        return call(static_cast<const ir::Call&>(expr));
      case ir::NodeKind::tuple:
        return operands(static_cast<const ir::Tuple&>(expr).elements);
      case ir::NodeKind::item: {
        const auto& item = static_cast<const ir::Item&>(expr);
        return {(*values_.find(*item.tuple))[item.index]};
      }
      case ir::NodeKind::invoke: {
        const auto& invoke = static_cast<const ir::Invoke&>(expr);
        return inside(*invoke.callee, operands(invoke.args));
      }
      case ir::NodeKind::if_region:
        return if_region(static_cast<const ir::IfRegion&>(expr));
      case ir::NodeKind::switch_region:
        return switch_region(static_cast<const ir::SwitchRegion&>(expr));
      case ir::NodeKind::while_region:
        return while_region(static_cast<const ir::WhileRegion&>(expr));
      case ir::NodeKind::for_region:
        return for_region(static_cast<const ir::ForRegion&>(expr));
      default:
        return {operand(expr)};
    }
  }

  Tensors call(const ir::Call& call) {
    const op::Card& card = detail::card(call.op);
    if (call.args.empty()) return without_operands(card, call);
    if (const Custom* twin = twin_of(call)) return twin->all(operands(call.args));
    Tensors held(call.args.size());
    detail::CallOperands operands;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const auto number = as_number(card, call, i);
      if (number && ir::is_float(number->dtype))
        operands.add(Operand(number->number));
      else if (number)
        operands.add(Operand(number->integer));
      else
        operands.add(Operand(held[i] = operand(*call.args[i])));
    }
    return detail::call_all(card, operands, call.attrs);
  }

  /// A twin takes floats of one type.
  [[nodiscard]] const Custom* twin_of(const ir::Call& call) const {
    if (ops_ == Ops::catalogue) return nullptr;
    const auto type = op::operand_type(*call.args[0]);
    for (const auto& arg : call.args)
      if (!type || !ir::is_float(type->dtype) || op::operand_type(*arg) != type) return nullptr;
    return custom_twin(call.op);
  }

  /// Such a call says no engine, and would be recorded in the default one.
  [[nodiscard]] Tensors without_operands(const op::Card& card, const ir::Call& call) const {
    const auto attributes = value_or_throw(op::complete_attributes(card, call.attrs));
    Tensors out;
    for (const auto& result : value_or_throw(op::run_reference(card, {}, attributes)))
      out.push_back(tensor_of(result, engine_));
    return out;
  }

  /// A scalar is recorded as a number where a tensor beside it says its dtype.
  std::optional<op::ScalarValue> as_number(const op::Card& card, const ir::Call& call, std::size_t i) const {
    if (ir::is<ir::Var>(call.args[i]) || ir::is<ir::Dense>(call.args[i]) || i >= card.inputs.size() ||
        card.inputs[i].type != "T")
      return std::nullopt;
    const auto value = scalar(*call.args[i]);
    if (!value || value->dtype == ir::Dtype::boolean) return std::nullopt;
    for (std::size_t k = 0; k < call.args.size() && k < card.inputs.size(); ++k)
      if (const auto* var = ir::as<ir::Var>(call.args[k]); var != nullptr && card.inputs[k].type == "T")
        return value;
    return std::nullopt;
  }

  // ---- regions

  [[nodiscard]] Tensors inside(const ir::Function& body, const Tensors& inputs) const {
    return LazyRun(body, parameters_, engine_, ops_)(inputs);
  }

  static Tensors joined(Tensors a, const Tensors& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  Tensors if_region(const ir::IfRegion& region) {
    const Tensors captures = operands(region.captures);
    const std::function<Tensors()> then = [&] { return inside(*region.then_body, captures); };
    const std::function<Tensors()> otherwise = [&] { return inside(*region.else_body, captures); };
    return cond(operand(*region.condition), then, otherwise);
  }

  Tensors switch_region(const ir::SwitchRegion& region) {
    const Tensors captures = operands(region.captures);
    std::vector<std::function<Tensors()>> bodies;
    for (const auto& body : region.bodies) bodies.emplace_back([&] { return inside(*body, captures); });
    return switch_(operand(*region.index), bodies);
  }

  Tensors while_region(const ir::WhileRegion& region) {
    const Tensors captures = operands(region.captures);
    return while_loop([&](const Tensors& s) { return inside(*region.condition, joined(s, captures))[0]; },
                      [&](const Tensors& s) { return inside(*region.body, joined(s, captures)); },
                      operands(region.inits), {.max_iterations = region.limit});
  }

  Tensors for_region(const ir::ForRegion& region) {
    const Tensors captures = operands(region.captures);
    const Tensor count = operand(*region.count);
    return for_loop(
        count,
        [&](const Tensor& i, const Tensors& s) {
          return inside(*region.body, joined({i}, joined(s, captures)));
        },
        operands(region.inits));
  }

  const ir::Function& function_;
  std::span<const double> parameters_;
  const EngineRef& engine_;
  Ops ops_;
  ir::NodeTable<Tensors> values_;
};

Results evaluated(const Tensors& tensors) {
  eval(tensors);
  Results out;
  for (const Tensor& tensor : tensors) out.push_back(host_of(tensor));
  return out;
}

bool computes_sizes(const Program& program) {
  for (const ir::Function* function : ir::functions_below(*program.function))
    for (const auto& statement : function->body)
      for (const auto& target : statement->targets)
        if (ir::is<ir::ScalarType>(target->type)) return true;
  return false;
}

/// Results, and the gradients of the sum of all floats among them by all floats among the inputs.
struct WithGradients {
  Results results, gradients;
};

Result<WithGradients> run_with_gradients(const Program& program, std::span<const double> parameters,
                                         const EngineRef& engine, Ops ops) {
  try {
    Tensors inputs, tracked;
    for (const auto& input : program.inputs) {
      inputs.push_back(tensor_of(input, engine));
      if (!ir::is_float(input.dtype())) continue;
      inputs.back().requires_grad();
      tracked.push_back(inputs.back());
    }
    const Tensors results = LazyRun(*program.function, parameters, engine, ops)(inputs);
    WithGradients out{.results = evaluated(results), .gradients = {}};
    Tensor total;
    for (const Tensor& result : results)
      if (ir::is_float(result.dtype())) {
        const Tensor part = sum(cast(result, {.dtype = Dtype::f64}));
        total = total.is_empty() ? part : total + part;
      }
    if (!total.is_empty() && !tracked.empty()) out.gradients = evaluated(gradients(total, tracked));
    return out;
  } catch (const Exception& e) {
    return e.error();
  }
}

/// The largest difference of floats is a small part of the largest of them. Where one is no number, or as
/// large as its dtype has them, roundings may decide everything.
bool is_near(const Results& expected, const Results& got) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double largest = 0, off = 0;
    for (std::int64_t k = 0; k < expected[i].size(); ++k) {
      const double a = fixture::element(expected[i].array(), k).number,
                   b = fixture::element(got[i].array(), k).number;
      if (!(std::abs(a) < 1e15) || !(std::abs(b) < 1e15)) return true;
      largest = std::max(largest, std::abs(a));
      off = std::max(off, std::abs(a - b));
    }
    if (off > 1e-3 * largest + 1e-6) return false;
  }
  return true;
}

}  // namespace

Result<std::optional<std::string>> tessera::differential::twins_differ(const Program& program,
                                                                       std::span<const double> parameters,
                                                                       const EngineRef& engine) {
  if (computes_sizes(program)) return Error(ErrorCode::unsupported, "a size depends on data");
  const auto expected = run_with_gradients(program, parameters, engine, Ops::catalogue);
  if (!expected) return std::optional<std::string>();  // some op has no gradient
  const auto got = run_with_gradients(program, parameters, engine, Ops::twins);
  if (!got) return std::optional(cat("with ops of its own: ", got.error().to_text()));
  if (const auto text = difference(expected->results, got->results))
    return std::optional(cat("with ops of its own: ", *text));
  if (expected->gradients.size() != got->gradients.size() || !is_near(expected->gradients, got->gradients))
    return std::optional<std::string>("the gradients are others with ops of the program's own");
  return std::optional<std::string>();
}

Result<std::vector<Results>> tessera::differential::run_lazily(const Program& program,
                                                               std::span<const double> parameters,
                                                               const EngineRef& engine) {
  if (computes_sizes(program)) return Error(ErrorCode::unsupported, "a size depends on data");
  try {
    Tensors inputs;
    for (const auto& input : program.inputs) inputs.push_back(tensor_of(input, engine));
    std::vector<Results> out;
    for (int time = 0; time < 2; ++time)
      out.push_back(evaluated(LazyRun(*program.function, parameters, engine)(inputs)));
    return out;
  } catch (const Exception& e) {
    return e.error();
  }
}
