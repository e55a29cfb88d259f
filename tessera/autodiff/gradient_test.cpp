// Rules about functions that others call, programs without regions, and errors.
#include "tessera/autodiff/gradient.h"

#include <gtest/gtest.h>

#include "tests/support/finite_differences.h"

using namespace tessera;
using fixture::check_both_orders;
using fixture::gradients_of;
using fixture::inputs_for;
using fixture::parsed_function;
using op::HostTensor;

namespace {

/// The last function of a module.
ir::FunctionRef last_function(std::string_view text) {
  const auto node = value_or_throw(ir::parse(text));
  value_or_throw(ir::verify(*node));
  return ir::as<ir::Module>(node)->functions.back();
}

const ir::FunctionRef& first_callee(const ir::Function& function) {
  return ir::as<ir::Invoke>(function.body[0]->value)->callee;
}

constexpr std::string_view calls = R"(
func layer[N](x: f64[N, 2], w: f64[2, 2]) {
  p: f64[N, 2] = matmul(x, w)
  y: f64[N, 2] = tanh(p)
  return y
}
func f(x: f64[3, 2], w: f64[2, 2]) {
  h: f64[3, 2] = call @layer[3](x, w)
  y: f64[3, 2] = call @layer[3](h, w)
  return y
})";

TEST(Calls, AreDifferentiated) {
  const auto f = last_function(calls);
  check_both_orders(f, inputs_for(*f, {}));
}

int count_calls(const ir::Function& function, std::string_view op) {
  int out = 0;
  for (const auto& statement : function.body) {
    if (const auto* call = ir::as<ir::Call>(statement->value)) out += call->op == op ? 1 : 0;
    if (const auto* invoke = ir::as<ir::Invoke>(statement->value)) out += count_calls(*invoke->callee, op);
  }
  return out;
}

// ---- parts of one value

void expect_no_sums(const ir::FunctionRef& f, int parts) {
  const auto gradient = value_or_throw(autodiff::vjp(f, autodiff::float_parameters(*f)));
  EXPECT_EQ(count_calls(*gradient, "update_slice"), parts) << ir::print(*gradient);
  EXPECT_EQ(count_calls(*gradient, "add"), 0) << ir::print(*gradient);
}

TEST(Parts, ThatDoNotOverlapAreWrittenSideBySide) {
  const auto f = parsed_function(R"(
func f(x: f64[5, 2]) {
  a: f64[2, 2] = slice(x) {starts = shape[0], stops = shape[2]}
  b: f64[2, 2] = slice(x) {starts = shape[3], stops = shape[1], steps = [-1]}
  c: f64[1, 1] = slice(x) {starts = shape[4, 1], stops = shape[5, 2]}
  d: f64[2, 2] = mul(a, b)
  e: f64[2, 2] = mul(d, c)
  return e
})");
  check_both_orders(f, inputs_for(*f, {}));
  expect_no_sums(f, 3);
}

TEST(Parts, OfSymbolicSizesAreProvenNotToOverlap) {
  expect_no_sums(parsed_function(R"(
func f[N](x: f64[N + 2, 2]) {
  a: f64[N, 2] = slice(x) {starts = shape[0], stops = shape[N]}
  b: f64[2, 2] = slice(x) {starts = shape[N], stops = shape[N + 2]}
  c: f64[] = sum(a)
  d: f64[2, 2] = mul(b, c)
  return d
})"),
                 2);
}

TEST(Parts, ThatOverlapAreAdded) {
  const auto f = parsed_function(R"(
func f(x: f64[4]) {
  a: f64[2] = slice(x) {starts = shape[0], stops = shape[2]}
  b: f64[2] = slice(x) {starts = shape[3], stops = shape[0], steps = [-2]}
  c: f64[2] = slice(x) {starts = shape[2], stops = shape[4]}
  d: f64[2] = mul(a, b)
  e: f64[2] = mul(d, c)
  return e
})");
  check_both_orders(f, inputs_for(*f, {}));
  const auto gradient = value_or_throw(autodiff::vjp(f, autodiff::float_parameters(*f)));
  EXPECT_EQ(count_calls(*gradient, "add"), 2) << ir::print(*gradient);
}

TEST(Checkpoint, ComputesAgainAndChangesNoValue) {
  const auto f = last_function(calls);
  const auto inputs = inputs_for(*f, {});
  autodiff::Rules rules;
  rules.checkpoint(first_callee(*f));
  check_both_orders(f, inputs, rules);
  EXPECT_EQ(gradients_of(f, inputs, rules), gradients_of(f, inputs));
  const auto wrt = autodiff::float_parameters(*f);
  const auto kept = value_or_throw(autodiff::vjp(f, wrt));
  const auto recomputed = value_or_throw(autodiff::vjp(f, wrt, rules));
  EXPECT_EQ(count_calls(*kept, "tanh"), 2);
  // Once to get past the first layer, and once more in the gradient of each.
  EXPECT_EQ(count_calls(*recomputed, "tanh"), 3) << ir::print(*recomputed);
}

TEST(Checkpoint, MakesOneGradientForAllCalls) {
  const auto f = last_function(calls);
  autodiff::Rules rules;
  rules.checkpoint(first_callee(*f));
  const auto gradient = value_or_throw(autodiff::vjp(f, autodiff::float_parameters(*f), rules));
  std::vector<ir::FunctionRef> backward;
  for (const auto& statement : gradient->body)
    if (const auto* invoke = ir::as<ir::Invoke>(statement->value); invoke != nullptr)
      if (invoke->callee != first_callee(*f)) backward.push_back(invoke->callee);
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(backward[0], backward[1]);
}

TEST(Checkpoint, SeesTheSameRandomNumbers) {
  const auto f = last_function(R"(
func noisy(x: f64[4]) {
  n: f64[4] = random_normal(0.0:f64, 1.0:f64, 7, 0) {shape = shape[4], dtype = f64}
  p: f64[4] = mul(x, n)
  y: f64[4] = sin(p)
  return y
}
func f(x: f64[4]) {
  h: f64[4] = call @noisy(x)
  y: f64[4] = call @noisy(h)
  return y
})");
  autodiff::Rules rules;
  rules.checkpoint(first_callee(*f));
  check_both_orders(f, inputs_for(*f, {}), rules);
  EXPECT_EQ(gradients_of(f, inputs_for(*f, {}), rules), gradients_of(f, inputs_for(*f, {})));
}

TEST(CustomGradient, TakesThePlaceOfTheOwnOne) {
  const auto f = last_function(R"(
func rounded(x: f64[2]) {
  y: f64[2] = round(x)
  return y
}
func f(x: f64[2]) {
  h: f64[2] = call @rounded(x)
  y: f64[2] = mul(h, 3.0:f64)
  return y
})");
  const auto straight_through = parsed_function(R"(
func g(x: f64[2], d: f64[2]) {
  y: f64[2] = mul(d, 2.0:f64)
  return y
})");
  autodiff::Rules rules;
  rules.set_gradient(first_callee(*f), straight_through);
  const auto inputs = inputs_for(*f, {});
  EXPECT_EQ(gradients_of(f, inputs)[0], (std::vector<double>{0, 0}));
  EXPECT_EQ(gradients_of(f, inputs, rules)[0], (std::vector<double>{6, 6}));
  const auto derivative = value_or_throw(autodiff::jvp(f, std::vector<std::size_t>{0}, rules));
  const auto tangents = value_or_throw(op::interpret(*derivative, std::vector{inputs[0], inputs[0]}));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_DOUBLE_EQ(tangents[0].values<double>()[i], 6 * inputs[0].values<double>()[i]);
}

TEST(CustomGradient, OfTheTrueDerivativeWorksInRegionsAndTwice) {
  const auto f = last_function(R"(
func cube(x: f64[2], y: f64[2]) {
  s: f64[2] = mul(x, x)
  c: f64[2] = mul(s, y)
  return c, s
}
func f(n: i64[], x: f64[2], w: f64[2]) {
  y: f64[2] = for n (x) with (w) (i: i64[], a: f64[2], w: f64[2]) {
    c: f64[2], s: f64[2] = call @cube(a, w)
    b: f64[2] = sin(c)
    return b
  }
  return y
})");
  const auto* loop = ir::as<ir::ForRegion>(f->body[0]->value);
  autodiff::Rules rules;
  rules.set_gradient(first_callee(*loop->body), parsed_function(R"(
func g(x: f64[2], y: f64[2], dc: f64[2], ds: f64[2]) {
  a: f64[2] = mul(dc, y)
  b: f64[2] = add(a, ds)
  c: f64[2] = mul(b, x)
  dx: f64[2] = mul(c, 2.0:f64)
  s: f64[2] = mul(x, x)
  dy: f64[2] = mul(dc, s)
  return dx, dy
})"));
  for (std::int64_t n : {0, 3}) check_both_orders(f, inputs_for(*f, {n}), rules);
}

TEST(CustomGradient, OfTheWrongFormIsAnError) {
  const auto f = last_function(calls);
  autodiff::Rules rules;
  rules.set_gradient(first_callee(*f), first_callee(*f));
  const auto gradient = autodiff::vjp(f, autodiff::float_parameters(*f), rules);
  ASSERT_FALSE(gradient);
  EXPECT_NE(gradient.error().to_text().find(
                "the gradient of function 'layer' takes 2 values and gives 1, expected 3 and 2"),
            std::string::npos)
      << gradient.error().to_text();
}

TEST(Gradient, GoesThroughTuplesAndOtherNames) {
  check_both_orders(R"(
func f(x: f64[2], y: f64[2]) {
  t: (f64[2], f64[2]) = tuple(x, y)
  a: f64[2] = item(t, 1)
  b: f64[2] = item(t, 0)
  c: f64[2] = a
  p: f64[2] = mul(b, c)
  q: f64[2] = mul(p, a)
  return q, x
})");
}

TEST(Gradient, OfABroadcastIsASum) {
  const auto f = parsed_function(R"(
func f(x: f64[2, 1], y: f64[2, 3]) {
  s: f64[2, 3] = add(x, y)
  return s
})");
  const auto gradients = gradients_of(f, inputs_for(*f, {}));
  EXPECT_EQ(gradients[0], (std::vector<double>{3, 3}));
  EXPECT_EQ(gradients[1], (std::vector<double>{1, 1, 1, 1, 1, 1}));
}

TEST(Gradient, ComputesNothingTwiceAndNothingInVain) {
  const auto f = parsed_function(R"(
func f(x: f64[2]) {
  a: f64[2] = exp(x)
  b: f64[2] = mul(a, a)
  c: f64[2] = sin(b)
  return c
})");
  const auto gradient = value_or_throw(autodiff::vjp(f, std::vector<std::size_t>{0}));
  EXPECT_EQ(count_calls(*gradient, "exp"), 1);
  EXPECT_EQ(count_calls(*gradient, "sin"), 0);
  // exp, mul, cos, d cos, one product for both factors, their sum, and the last product
  EXPECT_EQ(gradient->body.size(), 7u) << ir::print(*gradient);
}

TEST(Gradient, OfAnIntegerIsAnError) {
  const auto f = parsed_function("func f(n: i64[]) { return n }");
  const auto gradient = autodiff::vjp(f, std::vector<std::size_t>{0});
  ASSERT_FALSE(gradient);
  EXPECT_NE(gradient.error().to_text().find("it is no float tensor"), std::string::npos);
  EXPECT_FALSE(autodiff::jvp(f, std::vector<std::size_t>{0}));
  EXPECT_FALSE(autodiff::vjp(f, std::vector<std::size_t>{1}));
}

TEST(Jvp, NeedsNoLimitOfAWhile) {
  const auto f = parsed_function(R"(
func f(x: f64[2]) {
  y: f64[2] = while (x) with () (a: f64[2]) {
    m: f64[] = max(a)
    more: bool[] = gt(m, 0.2:f64)
    return more
  } do (a: f64[2]) {
    b: f64[2] = mul(a, a)
    c: f64[2] = mul(b, 0.4:f64)
    return c
  }
  return y
})");
  fixture::check_tangents(f, inputs_for(*f, {}));
}

}  // namespace
