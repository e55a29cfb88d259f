#include "tests/differential/element_formula.h"

#include "tessera/ir/fold_expression.h"
#include "tessera/op/body.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// A place among operands, constants or steps, before their numbers are known.
struct Source {
  enum class Kind : std::uint8_t { operand, constant, step } kind;
  std::size_t index;
};

Interval constant_value(const ir::Expr& expr) {
  if (const auto* number = ir::as<ir::FloatConst>(expr)) return exactly(number->value);
  if (const auto* number = ir::as<ir::IntConst>(expr)) return exactly(static_cast<double>(number->value));
  if (const auto* flag = ir::as<ir::BoolConst>(expr)) return exactly(flag->value ? 1 : 0);
  return anything();
}

}  // namespace

ElementFormula::ElementFormula(const op::Card& card, const std::vector<op::Dtype>& operands)
    : arity_(operands.size()) {
  std::vector<ir::ExprRef> leaves;
  std::vector<ir::Scalar> scalars;
  for (const op::Dtype dtype : operands) {
    leaves.emplace_back(ir::variable("v", ir::scalar_type(ir::is_float(dtype) ? op::Dtype::f64 : dtype)));
    scalars.emplace_back(leaves.back());
  }
  const ir::ExprRef root = card.pointwise->scalar(scalars).expr(op::Dtype::f64);
  std::vector<std::vector<Source>> places;
  const auto number = [&](const Source& place) {
    if (place.kind == Source::Kind::operand) return place.index;
    return arity_ + place.index + (place.kind == Source::Kind::step ? constants_.size() : 0);
  };
  const Source result = ir::fold_expression<Source>(
      *root, [](const ir::Expr& expr) { return ir::is<ir::ScalarOp>(expr); },
      [&](const ir::Expr& expr) -> Source {
        for (std::size_t i = 0; i < leaves.size(); ++i)
          if (&*leaves[i] == &expr) return {Source::Kind::operand, i};
        constants_.push_back(constant_value(expr));
        return {Source::Kind::constant, constants_.size() - 1};
      },
      [&](const ir::ScalarOp& op, std::span<const Source* const> of) -> Source {
        steps_.push_back({op.opcode, {}});
        places.emplace_back();
        for (const Source* place : of) places.back().push_back(*place);
        return {Source::Kind::step, steps_.size() - 1};
      });
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (const Source& place : places[i]) steps_[i].operands.push_back(number(place));
  result_ = number(result);
}

Interval ElementFormula::operator()(std::span<const Interval> operands, const Precision& precision) {
  values_.assign(operands.begin(), operands.end());
  for (const Interval& constant : constants_) values_.push_back(stored(constant, precision));
  for (const Step& step : steps_) {
    Interval in[3];
    for (std::size_t i = 0; i < step.operands.size(); ++i) in[i] = values_[step.operands[i]];
    values_.push_back(apply(step.opcode, {in, step.operands.size()}, precision));
  }
  return values_[result_];
}
