// Gradients through regions against finite differences, first and second order.
#include <gtest/gtest.h>

#include <random>

#include "tessera/ir/dim.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/verify.h"
#include "tessera/op/ir_builder.h"
#include "tests/support/finite_differences.h"

using namespace tessera;
using op::HostTensor;

namespace {

ir::FunctionRef parsed(std::string_view text) {
  const auto function = value_or_throw(ir::parse_function(text));
  value_or_throw(ir::verify(*function));
  return function;
}

/// Random floats in [0.5, 1.5] for the float parameters; the others, of rank 0, are `given` in order.
std::vector<HostTensor> inputs_for(const ir::Function& function, const std::vector<std::int64_t>& given) {
  std::mt19937_64 random(3);
  std::vector<HostTensor> out;
  std::size_t next = 0;
  for (const auto& param : function.params) {
    const auto type = *op::value_type(*param->type);
    out.push_back(value_or_throw(HostTensor::allocate(type.dtype, op::extents_of(type.shape))));
    if (type.dtype == ir::Dtype::f64) {
      for (double& v : out.back().values<double>())
        v = std::uniform_real_distribution<double>(0.5, 1.5)(random);
    } else if (type.dtype == ir::Dtype::boolean) {
      out.back().values<bool>()[0] = given.at(next++) != 0;
    } else {
      out.back().values<std::int64_t>()[0] = given.at(next++);
    }
  }
  return out;
}

void check_both_orders(const ir::FunctionRef& function, const std::vector<HostTensor>& inputs,
                       const autodiff::Rules& rules = {}) {
  fixture::check_gradient(function, inputs, autodiff::float_parameters(*function), 1e-6, "first order",
                          rules);
  const auto first = autodiff::vjp(function, autodiff::float_parameters(*function), rules);
  ASSERT_TRUE(first) << first.error().to_text();
  const auto sound = ir::verify(**first);
  ASSERT_TRUE(sound) << sound.error().to_text() << "\n" << ir::print(**first);
  std::mt19937_64 random(4);
  std::vector<HostTensor> more = inputs;
  for (HostTensor& weight : fixture::random_weights(*function, inputs, random))
    more.push_back(std::move(weight));
  const auto all = autodiff::float_parameters(**first);
  fixture::check_gradient(*first, more, all, 1e-5, "second order", rules);
  const auto second = autodiff::vjp(*first, all, rules);
  ASSERT_TRUE(second) << second.error().to_text();
  const auto second_sound = ir::verify(**second);
  EXPECT_TRUE(second_sound) << second_sound.error().to_text() << "\n" << ir::print(**second);
}

void check_both_orders(std::string_view text, const std::vector<std::int64_t>& given = {}) {
  const auto function = parsed(text);
  check_both_orders(function, inputs_for(*function, given));
}

/// The gradients of all float parameters for result gradients of 1.
std::vector<std::vector<double>> gradients_of(const ir::FunctionRef& function, std::vector<HostTensor> inputs,
                                              const autodiff::Rules& rules = {}) {
  const auto gradient = value_or_throw(autodiff::vjp(function, autodiff::float_parameters(*function), rules));
  for (const HostTensor& result : value_or_throw(op::interpret(*function, inputs))) {
    if (result.dtype() != ir::Dtype::f64) continue;
    inputs.push_back(fixture::converted(result, ir::Dtype::f64));
    for (double& v : inputs.back().values<double>()) v = 1;
  }
  std::vector<std::vector<double>> out;
  for (const HostTensor& one : value_or_throw(op::interpret(*gradient, inputs)))
    out.push_back(fixture::doubles(one));
  return out;
}

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
  const auto f = parsed(R"(
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
    const auto f = parsed(counted);
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

}  // namespace
