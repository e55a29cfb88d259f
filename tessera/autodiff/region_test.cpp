// Gradients through regions against finite differences, first and second order.
#include <gtest/gtest.h>

#include "tests/support/finite_differences.h"
#include "tests/support/growth.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using fixture::check_both_orders;
using fixture::gradients_of;
using fixture::inputs_for;
using fixture::parsed_function;
using op::HostTensor;

namespace {

constexpr std::string_view branches = R"(
func f(c: bool[], x: f64[3], y: f64[3]) {
  a: f64[3] = mul(x, y)
  r: f64[3], s: f64[3] = if c with (a, x, y) (a: f64[3], x: f64[3], y: f64[3]) {
    p: f64[3] = mul(a, x)
    q: f64[3] = sin(p)
    return q, x
  } else (a: f64[3], x: f64[3], y: f64[3]) {
    p: f64[3] = div(a, y)
    q: f64[3] = exp(p)
    return q, a
  }
  t: f64[3] = mul(r, s)
  return t
})";

TEST(IfGradient, FlowsIntoTheCapturesOfTheBranchThatRan) {
  check_both_orders(branches, {1});
  check_both_orders(branches, {0});
}

TEST(IfGradient, IsZeroForWhatTheOtherBranchUses) {
  const auto f = parsed_function(R"(
func f(c: bool[], x: f64[2], y: f64[2]) {
  r: f64[2] = if c with (x, y) (x: f64[2], y: f64[2]) {
    return x
  } else (x: f64[2], y: f64[2]) {
    z: f64[2] = mul(y, 0.0:f64)
    return z
  }
  return r
})");
  const auto on = gradients_of(f, inputs_for(*f, {1}));
  EXPECT_EQ(on[0], (std::vector<double>{1, 1}));
  EXPECT_EQ(on[1], (std::vector<double>{0, 0}));
  const auto off = gradients_of(f, inputs_for(*f, {0}));
  EXPECT_EQ(off[0], (std::vector<double>{0, 0}));
}

constexpr std::string_view choices = R"(
func f(k: i64[], x: f64[2, 2]) {
  r: f64[2, 2] = switch k with (x) [(x: f64[2, 2]) {
    y: f64[2, 2] = matmul(x, x)
    return y
  }, (x: f64[2, 2]) {
    y: f64[2, 2] = tanh(x)
    return y
  }, (x: f64[2, 2]) {
    y: f64[2, 2] = mul(x, 3.0:f64)
    return y
  }]
  return r
})";

TEST(SwitchGradient, IsThatOfTheBodyThatRan) {
  for (std::int64_t k : {0, 1, 2, 7, -1}) check_both_orders(choices, {k});
}

constexpr std::string_view counted = R"(
func f(n: i64[], x: f64[2], w: f64[2]) {
  y: f64[2], k: i64[], z: f64[2] = for n (x, n, w) with (w) (i: i64[], a: f64[2], k: i64[], b: f64[2], w: f64[2]) {
    p: f64[2] = mul(a, w)
    q: f64[2] = sin(p)
    c: f64[2] = add(q, b)
    d: f64[2] = mul(b, 0.5:f64)
    m: i64[] = add(k, i)
    return c, m, d
  }
  r: f64[2] = add(y, z)
  return r
})";

TEST(ForGradient, WithACountFromATensor) {
  for (std::int64_t n : {1, 4}) check_both_orders(counted, {n});
}

TEST(ForGradient, OfNoIterationsIsThatOfTheInitialValues) {
  for (std::int64_t n : {0, -3}) {
    check_both_orders(counted, {n});
    const auto f = parsed_function(counted);
    const auto gradients = gradients_of(f, inputs_for(*f, {n}));
    EXPECT_EQ(gradients[0], (std::vector<double>{1, 1}));
    EXPECT_EQ(gradients[1], (std::vector<double>{1, 1}));
  }
}

constexpr std::string_view fixed_count = R"(
func f(x: f64[3], w: f64[3, 3]) {
  y: f64[3] = for COUNT (x) with (w) (i: i64[], a: f64[3], w: f64[3, 3]) {
    p: f64[3] = matmul(a, w)
    q: f64[3] = tanh(p)
    return q
  }
  return y
})";

TEST(ForGradient, WithAConstantCount) {
  for (const char* count : {"5", "1", "0"}) {
    std::string text(fixed_count);
    text.replace(text.find("COUNT"), 5, count);
    check_both_orders(text);
  }
}

constexpr std::string_view by_size = R"(
func f[N](x: f64[N], w: f64[N]) {
  y: f64[N] = for 2 * N - 3 (x) with [N](w) [M](i: i64[], a: f64[M], w: f64[M]) {
    s: f64[M] = sin(a)
    b: f64[M] = mul(s, w)
    return b
  }
  return y
})";

TEST(ForGradient, WithACountOfSizes) {
  const auto on_symbols = parsed_function(by_size);
  for (std::int64_t n : {1, 2, 4}) {
    std::vector<HostTensor> inputs;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(value_or_throw(HostTensor::allocate(ir::Dtype::f64, {n})));
      for (double& v : inputs.back().values<double>()) v = 0.7 + 0.1 * i;
    }
    check_both_orders(on_symbols, inputs);
  }
}

TEST(ForGradient, WithACountFromAParameter) {
  std::string text(fixed_count);
  text.replace(text.find("COUNT"), 5, "$0:i64");
  const auto f = parsed_function(text);
  const auto gradient = value_or_throw(autodiff::vjp(f, std::vector<std::size_t>{0}));
  std::vector<HostTensor> inputs = inputs_for(*f, {});
  inputs.push_back(inputs[0]);
  for (double count : {0.0, 3.0}) {
    std::string constant(fixed_count);
    constant.replace(constant.find("COUNT"), 5, cat(static_cast<int>(count)));
    const auto expected =
        value_or_throw(autodiff::vjp(parsed_function(constant), std::vector<std::size_t>{0}));
    op::InterpreterOptions options;
    const auto bits = fixture::slot_bits(*gradient, {&count, 1});
    options.parameters = bits;
    const auto actual = op::interpret(*gradient, inputs, options);
    ASSERT_TRUE(actual) << actual.error().to_text();
    EXPECT_LE(fixture::largest_difference((*actual)[0], value_or_throw(op::interpret(*expected, inputs))[0]),
              1e-15);
  }
}

TEST(ForGradient, KeepsOnlyWhatTheGradientReads) {
  const auto f = parsed_function(R"(
func f(x: f64[4], w: f64[4]) {
  y: f64[4] = for 9 (x) with (w) (i: i64[], a: f64[4], w: f64[4]) {
    b: f64[4] = add(a, w)
    return b
  }
  return y
})");
  const auto gradient = value_or_throw(autodiff::vjp(f, autodiff::float_parameters(*f)));
  EXPECT_EQ(ir::print(*gradient).find("kept"), std::string::npos) << ir::print(*gradient);
  EXPECT_EQ(gradients_of(f, inputs_for(*f, {}))[1], (std::vector<double>{9, 9, 9, 9}));
}

constexpr std::string_view newton = R"(
func f(a: f64[]) {
  root: f64[] = while (a) with (a) LIMIT (r: f64[], a: f64[]) {
    square: f64[] = mul(r, r)
    error: f64[] = sub(square, a)
    size: f64[] = abs(error)
    more: bool[] = gt(size, 1e-14:f64)
    return more
  } do (r: f64[], a: f64[]) {
    quotient: f64[] = div(a, r)
    sum: f64[] = add(r, quotient)
    next: f64[] = mul(sum, 0.5:f64)
    return next
  }
  return root
})";

std::string newton_with(std::string_view limit) {
  std::string text(newton);
  return text.replace(text.find("LIMIT"), 5, limit);
}

TEST(WhileGradient, IsThatOfTheIterationsThatRan) {
  check_both_orders(newton_with("limit 20"));
  const auto f = parsed_function(newton_with("limit 20"));
  auto inputs = inputs_for(*f, {});
  inputs[0].values<double>()[0] = 4;
  EXPECT_NEAR(gradients_of(f, inputs)[0][0], 0.25, 1e-9);
}

TEST(WhileGradient, OfNoIterationsIsThatOfTheInitialValues) {
  const auto f = parsed_function(newton_with("limit 20"));
  auto inputs = inputs_for(*f, {});
  inputs[0].values<double>()[0] = 1;  // its own root
  EXPECT_EQ(gradients_of(f, inputs)[0], (std::vector<double>{1}));
}

TEST(WhileGradient, WithoutALimitIsAnErrorThatNamesTheLoop) {
  const auto f = parsed_function(newton_with(""));
  const auto gradient = autodiff::vjp(f, autodiff::float_parameters(*f));
  ASSERT_FALSE(gradient);
  const std::string text = gradient.error().to_text();
  EXPECT_NE(text.find("while loop that gives 'root' needs a limit"), std::string::npos) << text;
  EXPECT_NE(text.find(":3:"), std::string::npos) << text;
}

TEST(WhileGradient, OfALoopThatDoesNotEndStopsAtItsLimit) {
  const auto f = parsed_function(newton_with("limit 2"));
  auto inputs = inputs_for(*f, {});
  inputs[0].values<double>()[0] = 900;
  inputs.push_back(inputs[0]);
  const auto gradient = value_or_throw(autodiff::vjp(f, autodiff::float_parameters(*f)));
  const auto out = op::interpret(*gradient, inputs);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().to_text().find("limit of 2"), std::string::npos) << out.error().to_text();
}

constexpr std::string_view nested = R"(
func f(n: i64[], x: f64[2], w: f64[2]) {
  y: f64[2], z: f64[] = for n (x, 0.5:f64) with (w) (i: i64[], a: f64[2], g: f64, w: f64[2]) {
    p: f64[2] = for i (a) with (w) (j: i64[], b: f64[2], w: f64[2]) {
      q: f64[2] = mul(b, w)
      return q
    }
    odd: i64[] = mod(i, 2)
    is_odd: bool[] = cast(odd) {dtype = bool}
    r: f64[2] = if is_odd with (p, w) (p: f64[2], w: f64[2]) {
      s: f64[2], k: i64[] = while (p, 0) with (w) limit 5 (u: f64[2], k: i64, w: f64[2]) {
        more: bool[] = lt(k, 3)
        return more
      } do (u: f64[2], k: i64, w: f64[2]) {
        v: f64[2] = sin(u)
        l: i64 = add(k, 1)
        return v, l
      }
      return s
    } else (p: f64[2], w: f64[2]) {
      s: f64[2] = tanh(p)
      return s
    }
    return r, g
  }
  return y
})";

TEST(RegionGradient, GoesThroughNestedRegions) {
  std::string text(nested);
  text.replace(text.find("z: f64[]"), 8, "z: f64");
  text.replace(text.find("k: i64[] = while"), 8, "k: i64");
  for (std::int64_t n : {0, 1, 4}) check_both_orders(text, {n});
}

TEST(RegionGradient, DoesNotFlowThroughStopGradient) {
  const auto f = parsed_function(R"(
func f(n: i64[], x: f64[2], w: f64[2]) {
  y: f64[2] = for n (x) with (w) (i: i64[], a: f64[2], w: f64[2]) {
    v: f64[2] = stop_gradient(w)
    b: f64[2] = mul(a, v)
    return b
  }
  return y
})");
  auto inputs = inputs_for(*f, {3});
  const double w = inputs[2].values<double>()[0];
  const auto gradients = gradients_of(f, inputs);
  EXPECT_NEAR(gradients[0][0], w * w * w, 1e-12);
  EXPECT_EQ(gradients[1], (std::vector<double>{0, 0}));
}

// ---- what runs how often

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++out;
  return out;
}

/// `depth` conditions within each other; the innermost body takes a sine of a sine.
std::string nested_conditions(int depth) {
  std::string open, close;
  for (int i = 0; i < depth; ++i) {
    open += "r: f64[3] = if c with (c, x) (c: bool[], x: f64[3]) {\n";
    close += "return r } else (c: bool[], x: f64[3]) { z: f64[3] = mul(x, 0.5:f64) return z }\n";
  }
  return "func f(c: bool[], x: f64[3]) {\n" + open + "s: f64[3] = sin(x) r: f64[3] = sin(s)\n" + close +
         "return r }";
}

TEST(IfGradient, ComputesBodiesOnceHoweverDeepTheyStand) {
  for (int depth = 1; depth <= 5; ++depth) {
    const auto f = parsed_function(nested_conditions(depth));
    const auto gradient = autodiff::vjp(f, std::vector<std::size_t>{1});
    ASSERT_TRUE(gradient) << gradient.error().to_text();
    EXPECT_LE(count_of(ir::print(**gradient), " sin("), 2U) << ir::print(**gradient);
  }
  check_both_orders(nested_conditions(3), {1});
  check_both_orders(nested_conditions(3), {0});
}

TEST(SwitchGradient, BodiesOfDifferentNeedsShareWhatIsKept) {
  const std::string_view text = R"(
func f(k: i64[], x: f64[2, 2], w: f64[2]) {
  r: f64[2, 2] = switch k with (x, w) [(x: f64[2, 2], w: f64[2]) {
    a: f64[2, 2] = exp(x)
    b: f64[2, 2] = sin(a)
    y: f64[2, 2] = mul(b, a)
    return y
  }, (x: f64[2, 2], w: f64[2]) {
    s: f64[2] = exp(w)
    t: f64[2] = tanh(s)
    y: f64[2, 2] = mul(x, t)
    return y
  }, (x: f64[2, 2], w: f64[2]) {
    return x
  }]
  q: f64[2, 2] = mul(r, r)
  return q
})";
  for (std::int64_t k : {0, 1, 2}) check_both_orders(text, {k});
}

TEST(IfGradient, KeepsBooleansAndIntegersToo) {
  const std::string_view text = R"(
func f(c: bool[], x: f64[3], k: i64[2]) {
  r: f64[3] = if c with (x, k) (x: f64[3], k: i64[2]) {
    m: bool[3] = gt(x, 0.6:f64)
    j: i64[2] = mod(k, 2:i64)
    g: f64[2] = gather(x, j)
    s: f64[] = sum(g)
    a: f64[3] = mul(x, s)
    b: f64[3] = where(m, a, x)
    return b
  } else (x: f64[3], k: i64[2]) {
    return x
  }
  return r
})";
  for (std::int64_t c : {0, 1}) check_both_orders(text, {c, 4, 5});
}

TEST(IfGradient, InsideLoopsAndWithLoopsInside) {
  const std::string_view text = R"(
func f(n: i64[], c: bool[], x: f64[2]) {
  y: f64[2] = for n (x) with (c) (i: i64[], a: f64[2], c: bool[]) {
    r: f64[2] = if c with (a, i) (a: f64[2], i: i64[]) {
      p: f64[2] = for 3 (a) with () (j: i64[], b: f64[2]) {
        q: f64[2] = sin(b)
        return q
      }
      q: f64[2] = mul(p, a)
      return q
    } else (a: f64[2], i: i64[]) {
      m: i64[] = add(i, 1)
      p: f64[2] = for m (a) with () (j: i64[], b: f64[2]) {
        q: f64[2] = cos(b)
        return q
      }
      return p
    }
    return r
  }
  return y
})";
  for (std::int64_t n : {0, 2})
    for (std::int64_t c : {0, 1}) check_both_orders(text, {n, c});
}

TEST(IfGradient, WithSizesThatAreSymbols) {
  const std::string_view text = R"(
func f[N](c: bool[], x: f64[N], y: f64[N]) {
  r: f64[N] = if c with [N](x, y) [M](x: f64[M], y: f64[M]) {
    a: f64[M] = exp(x)
    b: f64[M] = mul(a, y)
    d: f64[M] = sin(b)
    return d
  } else [K](x: f64[K], y: f64[K]) {
    a: f64[K] = mul(x, x)
    return a
  }
  return r
})";
  const auto f = parsed_function(text);
  for (const bool c : {false, true}) {
    std::vector<HostTensor> inputs{value_or_throw(HostTensor::allocate(ir::Dtype::boolean, {}))};
    inputs[0].values<bool>()[0] = c;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(value_or_throw(HostTensor::allocate(ir::Dtype::f64, {3})));
      for (double& v : inputs.back().values<double>()) v = 0.7 + 0.1 * i;
    }
    check_both_orders(f, inputs);
  }
}

TEST(ForGradient, OfAWalkOverRowsAddsIntoOneBuffer) {
  const std::string_view text = R"(
func f(x: f64[5, 2], w: f64[2]) {
  y: f64[2] = for 5 (w) with (x) (i: i64[], a: f64[2], x: f64[5, 2]) {
    row: f64[2] = gather(x, i) {axis = 0}
    p: f64[2] = mul(a, row)
    q: f64[2] = sin(p)
    return q
  }
  return y
})";
  check_both_orders(text);
  const auto gradient = value_or_throw(autodiff::vjp(parsed_function(text), std::vector<std::size_t>{0}));
  const std::string printed = ir::print(*gradient);
  EXPECT_EQ(count_of(printed, "scatter_elements("), 1U) << printed;
  EXPECT_EQ(count_of(printed.substr(printed.find("scatter_elements(")), "add("), 0U) << printed;
}

/// The gradient of a loop of `n` iterations over a state of 64 numbers.
void run_loop_gradient(std::int64_t n) {
  const auto f = parsed_function(R"(
func f(n: i64[], x: f64[64]) {
  y: f64[64] = for n (x) with () (i: i64[], a: f64[64]) {
    q: f64[64] = sin(a)
    return q
  }
  return y
})");
  const auto gradient = value_or_throw(autodiff::vjp(f, std::vector<std::size_t>{1}));
  auto inputs = inputs_for(*f, {n});
  inputs.push_back(inputs[1]);
  EXPECT_TRUE(op::interpret(*gradient, inputs));
}

TEST(ForGradient, TakesTimeInProportionToTheIterations) {
  EXPECT_LT(fixture::growth(1000, 8000, run_loop_gradient), 24)
      << "copying all rows in each iteration would make it 64 times as long";
}

}  // namespace
