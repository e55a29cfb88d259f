#include "tessera/op/arithmetic.h"

#include "tessera/ir/scalar.h"
#include "tessera/ir/walk.h"
#include "tessera/op/body.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

ir::Scalar operand(Dtype dtype) { return ir::Scalar(ir::ExprRef(ir::variable("x", ir::scalar_type(dtype)))); }

/// Of an expression; what is shared in it counts once.
double operations_in(const ir::Scalar& formula, Dtype dtype) {
  const ir::ExprRef expr = formula.expr(dtype);
  double out = 0;
  for (const ir::Node* node : ir::post_order(*expr))
    if (const auto* operation = ir::as<ir::ScalarOp>(*node)) out += ir::info(operation->opcode).work;
  return out;
}

double operations_in(const PointwiseBody& body, Dtype dtype) {
  const std::vector<ir::Scalar> in(body.arity, operand(dtype));
  return operations_in(body.scalar(in), dtype);
}

}  // namespace

const ArithmeticCounter::Weight& ArithmeticCounter::weight_of(const CallInfo& call) {
  const Card& card = call.card();
  const auto [at, is_new] = weights_.try_emplace(&card);
  if (!is_new) return at->second;
  Weight& out = at->second;
  const Dtype dtype = call.inputs().empty() ? Dtype::f32 : call.input(0).dtype;
  if (card.pointwise != nullptr) {
    out.result = operations_in(*card.pointwise, dtype);
  } else if (card.reduction != nullptr) {
    const ReductionBody::OnScalar& body = card.reduction->on_scalar;
    const ir::Scalar x = operand(dtype), y = operand(dtype);
    out.input = operations_in(body.combine(y, body.map(x)), dtype);
    out.result = operations_in(body.finish(x, y), dtype);
  }
  return out;
}

/// The statements that the decomposition writes.
double ArithmeticCounter::in_parts(const CallInfo& call) {
  IrBuilder builder;
  Values inputs;
  for (const ValueType& type : call.inputs()) inputs.push_back(builder.parameter("x", type));
  (void)call.card().decompose(builder, call, inputs);
  if (!builder.status()) return 0;
  double out = 0;
  for (const auto& statement : builder.statements()) {
    const auto* part = ir::as<ir::Call>(*statement->value);
    const Card* card = part == nullptr ? nullptr : find_card(part->op);
    if (card == nullptr) continue;
    ValueTypes types, results;
    for (const ir::ExprRef& arg : part->args) types.push_back(*operand_type(*arg));
    for (const auto& target : statement->targets) results.push_back(*value_type(*target->type));
    out += operations({*card, types, part->attrs}, results);
  }
  return out;
}

double ArithmeticCounter::operations(const CallInfo& call, const ValueTypes& results) {
  const Card& card = call.card();
  if (card.work != nullptr) return card.work(call, results);
  if (card.decompose != nullptr && card.pointwise == nullptr && card.reduction == nullptr)
    return in_parts(call);
  const Weight& weight = weight_of(call);
  double out = 0;
  if (weight.input > 0) out += weight.input * element_estimate(call.input(0).shape);
  for (const ValueType& result : results) out += weight.result * element_estimate(result.shape);
  return out;
}
