// Scalars are computed in two places: folding in the IR, which knows integers only, and evaluating by the
// ops' formulas. Where both give a value it is the same.
#include <gtest/gtest.h>

#include <limits>

#include "tessera/base/text.h"
#include "tessera/ir/print.h"
#include "tessera/ir/scalar_fold.h"
#include "tessera/ir/verify.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using ir::Dtype;
using ir::ExprRef;
using ir::ScalarOpcode;

namespace {

constexpr Dtype integers[] = {Dtype::i64, Dtype::i32, Dtype::i16, Dtype::i8,     Dtype::u64,
                              Dtype::u32, Dtype::u16, Dtype::u8,  Dtype::boolean};

/// Constants of the dtype at and around the places where results wrap, and around 0.
std::vector<ExprRef> constants(Dtype dtype) {
  if (dtype == Dtype::boolean) return {ir::bool_const(false), ir::bool_const(true)};
  const unsigned unused = 64 - 8 * static_cast<unsigned>(ir::size_of(dtype));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() >> unused;
  std::vector<std::int64_t> values = {0, 1, 2, 3, 7, 8, 31, 63, 64, 100};
  if (ir::is_signed_integer(dtype)) {
    const std::int64_t highest = std::numeric_limits<std::int64_t>::max() >> unused;
    values.insert(values.end(), {-1, -2, -3, -7, -64, highest, highest - 1, -highest, -highest - 1});
  } else {
    for (const std::uint64_t value : {most, most - 1, most / 2, most / 2 + 1})
      values.push_back(static_cast<std::int64_t>(value));
  }
  std::vector<ExprRef> out;
  for (std::int64_t value : values) out.push_back(ir::int_const(value, dtype));
  return out;
}

std::optional<std::int64_t> integer_of(const ir::Expr& expr) {
  if (const auto* constant = ir::as<ir::IntConst>(expr)) return constant->value;
  if (const auto* constant = ir::as<ir::BoolConst>(expr)) return constant->value ? 1 : 0;
  return std::nullopt;
}

/// Counts what both computed.
void check(const ExprRef& expr, int& compared) {
  if (!ir::verify(*expr)) return;  // no operation on this dtype
  const ExprRef folded = ir::fold_scalars(expr);
  const auto by_folding = integer_of(*folded);
  if (!by_folding) return;
  const auto by_formula = op::evaluate_scalar(*expr, [](const ir::Expr&) { return std::nullopt; });
  ASSERT_TRUE(by_formula) << ir::print_line(*expr);
  EXPECT_EQ(*by_folding, by_formula->integer) << ir::print_line(*expr);
  EXPECT_EQ(ir::scalar_dtype(*folded), by_formula->dtype) << ir::print_line(*expr);
  ++compared;
}

TEST(Scalars, FoldingAndEvaluatingAgreeOnIntegers) {
  int compared = 0;
  for (std::size_t i = 0; i < ir::scalar_opcode_count; ++i) {
    const auto opcode = static_cast<ScalarOpcode>(i);
    if (opcode == ScalarOpcode::cast || opcode == ScalarOpcode::bitcast || ir::info(opcode).arity > 2)
      continue;
    for (const Dtype dtype : integers)
      for (const ExprRef& a : constants(dtype)) {
        if (ir::info(opcode).arity == 1) {
          check(ir::scalar_op(opcode, {a}), compared);
          continue;
        }
        for (const ExprRef& b : constants(dtype)) check(ir::scalar_op(opcode, {a, b}), compared);
      }
  }
  EXPECT_GT(compared, 10'000);
}

TEST(Scalars, FoldingAndEvaluatingAgreeOnConversions) {
  int compared = 0;
  for (const Dtype to : integers) {
    for (const Dtype from : integers)
      for (const ExprRef& value : constants(from)) {
        check(ir::scalar_cast(to, value), compared);
        if (ir::size_of(to) == ir::size_of(from)) check(ir::scalar_bitcast(to, value), compared);
      }
    for (const double value : {0.0,
                               -0.0,
                               0.5,
                               -0.5,
                               1.5,
                               -1.5,
                               127.0,
                               128.0,
                               -129.0,
                               255.5,
                               256.0,
                               65535.9,
                               3e9,
                               -3e9,
                               9.2e18,
                               9.3e18,
                               -9.3e18,
                               1.8e19,
                               1.9e19,
                               1e300,
                               -1e300,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()})
      check(ir::scalar_cast(to, ir::float_const(value, Dtype::f64)), compared);
  }
  EXPECT_GT(compared, 1'000);
}

}  // namespace
