// What libraries compute on the CPU: which steps become one call, and that its result is the reference's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tests/differential/runs.h"

namespace tessera::differential {
namespace {

struct LibraryCase {
  const char* name;
  const char* function;
  const char* steps;  ///< that compute, in their order
  std::vector<std::int64_t> sizes = {};
  double of_largest = 0;  ///< what may be lost of the largest element, by methods that add up others too
};

/// What single sums may differ by.
double rounding_of(float value) { return 2e-5 * std::max(1.0f, std::abs(value)); }

/// Of those that are finite.
double largest_of(std::span<const float> values) {
  float out = 0;
  for (const float value : values)
    if (std::isfinite(value)) out = std::max(out, std::abs(value));
  return out;
}

op::HostTensor random_tensor(const op::Extents& shape, std::mt19937& source) {
  std::uniform_real_distribution<float> from(-1.0f, 1.0f);
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(op::Dtype::f32, shape));
  for (float& value : out.values<float>()) value = from(source);
  return out;
}

Program program_of(const LibraryCase& given) {
  Program out{.function = value_or_throw(ir::parse_function(given.function)), .sizes = given.sizes};
  std::mt19937 source(7);
  for (const auto& param : out.function->params) {
    op::Extents shape;
    for (const ir::Dim& dim : static_cast<const ir::TensorType&>(*param->type).shape)
      shape.push_back(*ir::evaluate(dim, [&](const ir::Var& var) -> std::optional<std::int64_t> {
        for (std::size_t i = 0; i < given.sizes.size(); ++i)
          if (out.function->dims[i].get() == &var) return given.sizes[i];
        return std::nullopt;
      }));
    out.inputs.push_back(random_tensor(shape, source));
  }
  out.first_parameters = {0.5, 0.25};
  out.second_parameters = {3.0, -2.0};
  return out;
}

std::string steps_of(const plan::Plan& plan) {
  std::string out;
  for (const plan::Step& step : plan.steps)
    if (step.card == nullptr || step.card->view == nullptr) out += cat(out.empty() ? "" : " ", step.name());
  return out;
}

class Library : public testing::TestWithParam<LibraryCase> {};

TEST_P(Library, computes_what_the_reference_does) {
  const Program program = program_of(GetParam());
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  const auto planned = value_or_throw(compiler::plan_function(program.function, cpu->target()));
  EXPECT_EQ(steps_of(*planned.plan), GetParam().steps) << to_text(*planned.plan);
  for (const plan::Step& step : planned.plan->steps)
    EXPECT_TRUE(step.kind != plan::StepKind::library || runtime::cpu::library_form(step)) << step.name();
  const auto expected = value_or_throw(run_reference(*program.function, program, program.first_parameters));
  const auto got = value_or_throw(run_planned(program, {}, *cpu, cpu->target(), program.first_parameters));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    ASSERT_EQ(got[r].shape(), expected[r].shape());
    const auto a = expected[r].values<float>(), b = got[r].values<float>();
    const double lost = GetParam().of_largest * largest_of(a);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], std::max(rounding_of(a[i]), lost)) << "result " << r << ", element " << i;
  }
}

const LibraryCase cases[] = {
    {"bias_and_activation",
     "func f(x: f32[5, 7], w: f32[7, 9], b: f32[9]) { a: f32[5, 9] = matmul(x, w) "
     "c: f32[5, 9] = add(a, b) d: f32[5, 9] = relu(c) return d }",
     "matmul+add+relu"},
    {"bias_first",
     "func f(x: f32[5, 7], w: f32[7, 9], b: f32[1, 9]) { a: f32[5, 9] = matmul(x, w) "
     "c: f32[5, 9] = add(b, a) d: f32[5, 9] = tanh(c) return d }",
     "matmul+add+tanh"},
    {"constant_weights",
     "func f(x: f32[3, 2]) { a: f32[3, 3] = matmul(x, dense f32[2, 3] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) "
     "c: f32[3, 3] = add(a, dense f32[3] [0.5, -0.5, 0.25]) d: f32[3, 3] = sigmoid(c) return d }",
     "matmul+add+sigmoid"},
    {"symbolic_rows_and_residual",
     "func f[N](x: f32[N, 4, 6], w: f32[6, 8], b: f32[8], r: f32[N, 4, 8]) { a: f32[N, 4, 8] = matmul(x, w) "
     "c: f32[N, 4, 8] = add(a, b) d: f32[N, 4, 8] = add(c, r) return d }",
     "matmul+add+add",
     {3}},
    {"silu_written_out",
     "func f(x: f32[5, 7], w: f32[7, 9], b: f32[9]) { a: f32[5, 9] = matmul(x, w) c: f32[5, 9] = add(a, b) "
     "s: f32[5, 9] = sigmoid(c) d: f32[5, 9] = mul(c, s) return d }",
     "matmul+add+silu"},
    {"hard_swish_written_out",
     "func f(x: f32[1, 16, 9, 9], w: f32[32, 16, 3, 3]) { a: f32[1, 32, 7, 7] = conv(x, w) "
     "c: f32[1, 32, 7, 7] = add(a, 3.0) l: f32[1, 32, 7, 7] = maximum(c, 0.0) "
     "h: f32[1, 32, 7, 7] = minimum(l, 6.0) m: f32[1, 32, 7, 7] = mul(a, h) d: f32[1, 32, 7, 7] = div(m, "
     "6.0) "
     "return d }",
     "conv+hard_swish"},
    {"attention",
     "func f(q: f32[2, 3, 5, 8], k: f32[2, 3, 7, 8], v: f32[2, 3, 7, 6]) { "
     "t: f32[2, 3, 8, 7] = transpose(k) {permutation = [0, 1, 3, 2]} a: f32[2, 3, 5, 7] = matmul(q, t) "
     "s: f32[2, 3, 5, 7] = mul(a, $0:f32) p: f32[2, 3, 5, 7] = softmax(s) {axis = -1} "
     "y: f32[2, 3, 5, 6] = matmul(p, v) z: f32[2, 5, 3, 6] = transpose(y) {permutation = [0, 2, 1, 3]} "
     "return z }",
     "matmul+mul+softmax+matmul+transpose"},
    {"attention_of_scaled_queries_to_shared_keys",
     "func f(q: f32[2, 70, 8], t: f32[1, 8, 33], v: f32[1, 33, 16]) { c: f32[2, 70, 8] = mul(q, 0.125) "
     "a: f32[2, 70, 33] = matmul(c, t) p: f32[2, 70, 33] = softmax(a) {axis = 2} "
     "y: f32[2, 70, 16] = matmul(p, v) return y }",
     "matmul+softmax+matmul+mul"},
    {"attention_of_one_query_to_many_keys",
     "func f[N](q: f32[4, 1, 36], k: f32[4, N, 36], v: f32[4, N, 36]) { "
     "t: f32[4, 36, N] = transpose(k) {permutation = [0, 2, 1]} a: f32[4, 1, N] = matmul(q, t) "
     "p: f32[4, 1, N] = softmax(a) {axis = -1} y: f32[4, 1, 36] = matmul(p, v) "
     "z: f32[1, 4, 36] = transpose(y) {permutation = [1, 0, 2]} return z }",
     "matmul+softmax+matmul",
     {1100}},
    {"layers_around_a_softmax_are_no_attention",
     "func f(x: f32[3, 5, 8], w: f32[8, 7], u: f32[7, 6]) { a: f32[3, 5, 7] = matmul(x, w) "
     "p: f32[3, 5, 7] = softmax(a) {axis = -1} y: f32[3, 5, 6] = matmul(p, u) return y }",
     "matmul kernel matmul"},
    {"attention_to_nothing",
     "func f[N](q: f32[4, 9, 16], k: f32[4, N, 16], v: f32[4, N, 16]) { "
     "t: f32[4, 16, N] = transpose(k) {permutation = [0, 2, 1]} a: f32[4, 9, N] = matmul(q, t) "
     "p: f32[4, 9, N] = softmax(a) {axis = -1} y: f32[4, 9, 16] = matmul(p, v) return y }",
     "matmul+softmax+matmul",
     {0}},
    {"attention_whose_weights_are_wanted",
     "func f(q: f32[3, 5, 8], t: f32[3, 8, 7], v: f32[3, 7, 6]) { a: f32[3, 5, 7] = matmul(q, t) "
     "p: f32[3, 5, 7] = softmax(a) {axis = -1} y: f32[3, 5, 6] = matmul(p, v) return y, p }",
     "matmul kernel matmul"},
    {"a_softmax_along_another_axis_is_no_attention",
     "func f(q: f32[3, 5, 8], t: f32[3, 8, 7], v: f32[3, 7, 6]) { a: f32[3, 5, 7] = matmul(q, t) "
     "p: f32[3, 5, 7] = softmax(a) {axis = 1} y: f32[3, 5, 6] = matmul(p, v) return y }",
     "matmul kernel matmul"},
    {"weights_less_their_gradient",
     "func f(x: f32[6, 5], g: f32[6, 7], w: f32[5, 7]) { t: f32[5, 6] = transpose(x) {permutation = [1, 0]} "
     "a: f32[5, 7] = matmul(t, g) b: f32[5, 7] = mul(a, 0.125) c: f32[5, 7] = sub(w, b) return c }",
     "matmul+mul+sub"},
    {"weights_less_their_gradient_times_a_number",
     "func f(x: f32[5, 6], g: f32[6, 7], w: f32[5, 7]) { a: f32[5, 7] = matmul(x, g) "
     "b: f32[5, 7] = mul(a, $0:f32) c: f32[5, 7] = sub(w, b) d: f32[5, 7] = relu(c) return d }",
     "matmul+mul+sub+relu"},
    {"less_a_product",
     "func f(x: f32[5, 6], g: f32[6, 7], w: f32[5, 7]) { a: f32[5, 7] = matmul(x, g) c: f32[5, 7] = sub(w, "
     "a) "
     "return c }",
     "matmul+sub"},
    {"a_product_less_another_array",
     "func f(x: f32[5, 6], g: f32[6, 7], w: f32[5, 7]) { a: f32[5, 7] = matmul(x, g) c: f32[5, 7] = sub(a, "
     "w) "
     "return c }",
     "matmul kernel"},
    {"weights_and_their_gradient",
     "func f(x: f32[24, 70], g: f32[24, 64], w: f32[70, 64]) { t: f32[70, 24] = transpose(x) {permutation = "
     "[1, 0]} a: f32[70, 64] = matmul(t, g) b: f32[70, 64] = mul($0:f32, a) c: f32[70, 64] = sub(w, b) "
     "return c, a }",
     "matmul+mul+sub"},
    {"a_gradient_and_weights_less_it",
     "func f[N](x: f32[N, 5], g: f32[N, 37], w: f32[5, 37]) { t: f32[5, N] = transpose(x) {permutation = [1, "
     "0]} a: f32[5, 37] = matmul(t, g) c: f32[5, 37] = sub(w, a) return a, c }",
     "matmul+sub",
     {300}},
    {"a_gradient_of_nothing",
     "func f[N](x: f32[N, 5], g: f32[N, 32], w: f32[5, 32]) { t: f32[5, N] = transpose(x) {permutation = [1, "
     "0]} a: f32[5, 32] = matmul(t, g) b: f32[5, 32] = mul(a, 0.5) c: f32[5, 32] = sub(w, b) return a, c }",
     "matmul+mul+sub",
     {0}},
    {"gradients_of_a_batch",
     "func f(x: f32[3, 6, 9], g: f32[3, 9, 33], w: f32[3, 6, 33]) { a: f32[3, 6, 33] = matmul(x, g) "
     "b: f32[3, 6, 33] = mul(a, 0.5) c: f32[3, 6, 33] = sub(w, b) d: f32[3, 6, 33] = exp(a) return c, d }",
     "matmul+mul+sub kernel"},
    {"one_of_two_arrays_that_a_product_updates",
     "func f(x: f32[5, 6], g: f32[6, 32], w: f32[5, 32], v: f32[5, 32]) { a: f32[5, 32] = matmul(x, g) "
     "b: f32[5, 32] = mul(a, 0.5) c: f32[5, 32] = sub(w, b) d: f32[5, 32] = mul(a, 0.25) "
     "e: f32[5, 32] = sub(v, d) return c, e }",
     "matmul+mul+sub kernel"},
    {"a_product_less_a_part_of_itself",
     "func f(x: f32[5, 6], g: f32[6, 32]) { a: f32[5, 32] = matmul(x, g) b: f32[5, 32] = mul(a, 0.5) "
     "c: f32[5, 32] = sub(a, b) return c }",
     "matmul kernel"},
    {"a_product_and_itself_less_a_part",
     "func f(x: f32[5, 6], g: f32[6, 32]) { a: f32[5, 32] = matmul(x, g) b: f32[5, 32] = mul(a, $0:f32) "
     "c: f32[5, 32] = sub(a, b) return c, a }",
     "matmul kernel"},
    {"what_follows_from_a_product_is_not_updated_with_it",
     "func f(x: f32[5, 6], g: f32[6, 32], w: f32[5, 6]) { a: f32[5, 32] = matmul(x, g) "
     "r: f32[32, 6] = transpose(g) {permutation = [1, 0]} s: f32[5, 6] = matmul(a, r) "
     "v: f32[5, 32] = matmul(s, g) b: f32[5, 32] = mul(a, 0.5) c: f32[5, 32] = sub(v, b) return c }",
     "matmul matmul matmul kernel"},
    {"slope_below_zero",
     "func f(x: f32[5, 7], w: f32[7, 9], b: f32[9]) { a: f32[5, 9] = matmul(x, w) c: f32[5, 9] = add(a, b) "
     "d: f32[5, 9] = leaky_relu(c, 0.125) return d }",
     "matmul+add+leaky_relu"},
    {"slope_below_zero_of_a_convolution",
     "func f(x: f32[1, 16, 9, 9], w: f32[32, 16, 3, 3], r: f32[1, 32, 7, 7]) { a: f32[1, 32, 7, 7] = conv(x, "
     "w) "
     "c: f32[1, 32, 7, 7] = add(a, r) d: f32[1, 32, 7, 7] = leaky_relu(c, 0.2) return d }",
     "conv+add+leaky_relu"},
    {"limits",
     "func f(x: f32[1, 16, 9, 9], w: f32[32, 16, 3, 3], r: f32[1, 32, 7, 7]) { a: f32[1, 32, 7, 7] = conv(x, "
     "w) "
     "c: f32[1, 32, 7, 7] = clip(a, 0.0, 0.75) d: f32[1, 32, 7, 7] = add(c, r) return d }",
     "conv+clip+add"},
    {"limits_of_a_product",
     "func f(x: f32[5, 7], w: f32[7, 9]) { a: f32[5, 9] = matmul(x, w) c: f32[5, 9] = clip(a, -0.5, 0.25) "
     "return c }",
     "matmul+clip"},
    {"limits_that_are_parameters",
     "func f(x: f32[5, 7], w: f32[7, 9]) { a: f32[5, 9] = matmul(x, w) c: f32[5, 9] = clip(a, $0:f32, "
     "$1:f32) "
     "return c }",
     "matmul kernel"},
    {"residual_before_activation",
     "func f(x: f32[4, 6], w: f32[6, 8], r: f32[4, 8]) { a: f32[4, 8] = matmul(x, w) "
     "c: f32[4, 8] = add(r, a) d: f32[4, 8] = gelu(c) return d }",
     "matmul+add+gelu"},
    {"residual_after_activation",
     "func f(x: f32[4, 6], w: f32[6, 8], r: f32[4, 8]) { a: f32[4, 8] = matmul(x, w) "
     "c: f32[4, 8] = gelu_tanh(a) d: f32[4, 8] = add(r, c) return d }",
     "matmul+gelu_tanh+add"},
    {"scale_of_a_batch",
     "func f(x: f32[2, 3, 4, 5], y: f32[2, 3, 5, 4]) { a: f32[2, 3, 4, 4] = matmul(x, y) "
     "c: f32[2, 3, 4, 4] = div(a, 3.0) return c }",
     "matmul+div"},
    {"scale_that_is_a_parameter",
     "func f(x: f32[4, 5], y: f32[5, 4], b: f32[4]) { a: f32[4, 4] = matmul(x, y) "
     "c: f32[4, 4] = mul(a, $0:f32) d: f32[4, 4] = add(c, b) return d }",
     "matmul+mul+add"},
    {"scale_before_the_product",
     "func f(q: f32[2, 3, 7, 16], k: f32[2, 3, 9, 16]) { s: f32[2, 3, 7, 16] = mul(q, 0.25) "
     "t: f32[2, 3, 16, 9] = transpose(k) {permutation = [0, 1, 3, 2]} "
     "a: f32[2, 3, 7, 9] = matmul(s, t) return a }",
     "matmul+mul"},
    {"scale_before_the_product_on_the_right",
     "func f(x: f32[70, 64], w: f32[64, 90], b: f32[90]) { s: f32[64, 90] = div(w, $0:f32) "
     "a: f32[70, 90] = matmul(x, s) c: f32[70, 90] = add(a, b) y: f32[70, 90] = relu(c) return y }",
     "matmul+add+relu+div"},
    {"scaled_queries_that_others_read",
     "func f(q: f32[7, 16], k: f32[16, 9]) { s: f32[7, 16] = mul(q, 0.25) "
     "a: f32[7, 9] = matmul(s, k) return a, s }",
     "kernel matmul"},
    {"division_by_a_parameter",
     "func f(x: f32[4, 5], y: f32[5, 4]) { a: f32[4, 4] = matmul(x, y) c: f32[4, 4] = div(a, $1:f32) "
     "return c }",
     "matmul+div"},
    {"transposed_operands",
     "func f(x: f32[6, 4], w: f32[8, 6], r: f32[8, 4]) { t: f32[4, 6] = transpose(x) {permutation = [1, 0]} "
     "u: f32[6, 8] = transpose(w) {permutation = [1, 0]} s: f32[4, 8] = transpose(r) {permutation = [1, 0]} "
     "a: f32[4, 8] = matmul(t, u) c: f32[4, 8] = add(a, s) return c }",
     "matmul+add"},
    {"batches_that_cross",
     "func f(x: f32[2, 1, 4, 5], y: f32[3, 5, 4]) { a: f32[2, 3, 4, 4] = matmul(x, y) "
     "c: f32[2, 3, 4, 4] = relu(a) return c }",
     "matmul+relu"},
    {"depth_of_zero",
     "func f(x: f32[3, 0], w: f32[0, 4], b: f32[4]) { a: f32[3, 4] = matmul(x, w) "
     "c: f32[3, 4] = add(a, b) return c }",
     "matmul+add"},
    {"depth_of_one",
     "func f(x: f32[2, 5, 1], w: f32[1, 6], y: f32[2, 1, 3]) { a: f32[2, 5, 6] = matmul(x, w) "
     "b: f32[2, 5, 3] = matmul(x, y) return a, b }",
     "matmul matmul"},
    {"no_rows",
     "func f(x: f32[0, 2], w: f32[2, 4], b: f32[4]) { a: f32[0, 4] = matmul(x, w) "
     "c: f32[0, 4] = add(a, b) return c }",
     "matmul+add"},
    {"product_that_others_read",
     "func f(x: f32[3, 5], w: f32[5, 4]) { a: f32[3, 4] = matmul(x, w) c: f32[3, 4] = relu(a) return a, c }",
     "matmul kernel"},
    {"a_product_added_to_itself",
     "func f(x: f32[3, 5], w: f32[5, 4]) { a: f32[3, 4] = matmul(x, w) c: f32[3, 4] = exp(a) "
     "d: f32[3, 4] = add(a, c) return d }",
     "matmul kernel"},
    {"two_activations",
     "func f(x: f32[3, 5], w: f32[5, 4]) { a: f32[3, 4] = matmul(x, w) c: f32[3, 4] = relu(a) "
     "d: f32[3, 4] = tanh(c) return d }",
     "matmul kernel"},
    {"a_bias_of_rows_is_none",
     "func f(x: f32[3, 5], w: f32[5, 4], b: f32[3, 1]) { a: f32[3, 4] = matmul(x, w) "
     "c: f32[3, 4] = add(a, b) return c }",
     "matmul kernel"},
    {"convolution",
     "func f(x: f32[2, 3, 9, 8], w: f32[4, 3, 3, 3], b: f32[4]) { a: f32[2, 4, 9, 8] = conv(x, w, b) {pads = "
     "[1, 1, 1, 1]} c: f32[2, 4, 9, 8] = relu(a) return c }",
     "conv+relu"},
    {"convolution_with_winograd_and_residual",
     "func f(x: f32[1, 32, 20, 20], w: f32[32, 32, 3, 3], b: f32[32, 1, 1], r: f32[1, 32, 20, 20]) { "
     "a: f32[1, 32, 20, 20] = conv(x, w) {pads = [1, 1, 1, 1]} c: f32[1, 32, 20, 20] = add(a, b) "
     "d: f32[1, 32, 20, 20] = add(c, r) e: f32[1, 32, 20, 20] = relu(d) return e }",
     "conv+add+add+relu",
     {},
     1e-5},
    {"strides_dilations_groups",
     "func f(x: f32[2, 4, 11, 9], w: f32[6, 2, 3, 2]) { a: f32[2, 6, 5, 5] = conv(x, w) {groups = 2, strides "
     "= [2, 2], dilations = [2, 1], pads = [1, 0, 2, 2]} return a }",
     "conv"},
    {"depthwise",
     "func f(x: f32[1, 8, 6, 6], w: f32[8, 1, 3, 3], b: f32[8]) { a: f32[1, 8, 6, 6] = conv(x, w, b) {groups "
     "= 8, pads = [1, 1, 1, 1]} c: f32[1, 8, 6, 6] = relu(a) return c }",
     "conv+relu"},
    {"depthwise_with_strides_and_several_filters",
     "func f(x: f32[2, 3, 40, 75], w: f32[6, 1, 3, 5], b: f32[6], r: f32[2, 6, 19, 73]) { "
     "a: f32[2, 6, 19, 73] = conv(x, w, b) {groups = 3, strides = [2, 1], dilations = [2, 1], pads = [1, 2, "
     "1, 0]} "
     "c: f32[2, 6, 19, 73] = relu(a) d: f32[2, 6, 19, 73] = add(c, r) return d }",
     "conv+relu+add"},
    {"depthwise_in_whole_vectors_with_steps",
     "func f(x: f32[1, 5, 33, 65], w: f32[5, 1, 3, 3], b: f32[5]) { a: f32[1, 5, 16, 32] = conv(x, w, b) "
     "{groups = 5, strides = [2, 2]} c: f32[1, 5, 16, 32] = gelu(a) return c }",
     "conv+gelu"},
    {"depthwise_with_steps_and_dilations",
     "func f(x: f32[2, 3, 20, 50], w: f32[3, 1, 2, 4]) { a: f32[2, 3, 11, 23] = conv(x, w) {groups = 3, "
     "strides = [2, 2], dilations = [1, 2], pads = [3, 1, 0, 1]} return a }",
     "conv"},
    {"depthwise_along_one_axis",
     "func f(x: f32[1, 5, 100], w: f32[5, 1, 7]) { a: f32[1, 5, 98] = conv(x, w) {groups = 5, pads = [2, 2]} "
     "c: f32[1, 5, 98] = sigmoid(a) return c }",
     "conv+sigmoid"},
    {"one_element",
     "func f(x: f32[2, 24, 20, 17], w: f32[40, 24, 1, 1], b: f32[40], r: f32[2, 40, 20, 17]) { "
     "a: f32[2, 40, 20, 17] = conv(x, w, b) c: f32[2, 40, 20, 17] = add(a, r) d: f32[2, 40, 20, 17] = "
     "relu(c) "
     "return d }",
     "conv+add+relu"},
    {"one_element_of_many_places",
     "func f(x: f32[1, 24, 128, 128], w: f32[24, 24, 1, 1], b: f32[24]) { "
     "a: f32[1, 24, 128, 128] = conv(x, w, b) return a }",
     "conv"},
    {"one_axis",
     "func f[T](x: f32[1, 3, T], w: f32[4, 3, 5], b: f32[4]) { a: f32[1, 4, T - 4] = conv(x, w, b) "
     "c: f32[1, 4, T - 4] = tanh(a) return c }",
     "conv+tanh",
     {13}},
    {"source_that_is_a_view",
     "func f(x: f32[8, 7, 3, 2], w: f32[4, 3, 1, 1]) { t: f32[2, 3, 7, 8] = transpose(x) {permutation = [3, "
     "2, 1, 0]} a: f32[2, 4, 7, 8] = conv(t, w) return a }",
     "conv"},
    {"three_axes",
     "func f(x: f32[2, 3, 6, 9, 8], w: f32[5, 3, 3, 3, 2], b: f32[5]) { a: f32[2, 5, 3, 9, 7] = conv(x, w, "
     "b) "
     "{pads = [1, 1, 0, 1, 1, 0], strides = [2, 1, 1]} c: f32[2, 5, 3, 9, 7] = relu(a) return c }",
     "conv+relu"},
    {"three_axes_by_winograd",
     "func f(x: f32[1, 8, 7, 12, 13], w: f32[16, 8, 3, 3, 3], b: f32[16, 1, 1, 1]) { a: f32[1, 16, 7, 12, "
     "13] "
     "= conv(x, w) {pads = [1, 1, 1, 1, 1, 1]} c: f32[1, 16, 7, 12, 13] = add(a, b) "
     "d: f32[1, 16, 7, 12, 13] = tanh(c) return d }",
     "conv+add+tanh"},
    {"three_axes_in_groups_with_gaps",
     "func f(x: f32[1, 6, 9, 10, 11], w: f32[4, 3, 2, 3, 2]) { a: f32[1, 4, 7, 6, 9] = conv(x, w) "
     "{groups = 2, dilations = [2, 2, 2]} return a }",
     "conv"},
    {"three_axes_with_what_is_added",
     "func f(x: f32[2, 2, 3, 5, 5], w: f32[3, 2, 3, 1, 1], r: f32[2, 3, 1, 5, 5]) { a: f32[2, 3, 1, 5, 5] = "
     "conv(x, w) c: f32[2, 3, 1, 5, 5] = add(a, r) return c }",
     "conv kernel"},
    {"three_axes_of_a_view",
     "func f[N](x: f32[4, 5, 6, 3, N], w: f32[2, 3, 2, 2, 2]) { t: f32[N, 3, 4, 6, 5] = transpose(x) "
     "{permutation = [4, 3, 0, 2, 1]} a: f32[N, 2, 3, 5, 4] = conv(t, w) return a }",
     "conv",
     {3}},
    {"largest_of_windows",
     "func f(x: f32[2, 3, 9, 8]) { a: f32[2, 3, 5, 4], i: i64[2, 3, 5, 4] = max_pool(x) {kernel = [3, 2], "
     "strides = [2, 2], pads = [1, 0, 1, 0]} return a }",
     "max_pool"},
    {"largest_of_dilated_and_partial_windows",
     "func f(x: f32[2, 3, 19, 70]) { a: f32[2, 3, 9, 35], i: i64[2, 3, 9, 35] = max_pool(x) {kernel = [3, "
     "2], "
     "strides = [2, 2], dilations = [1, 3], pads = [0, 1, 0, 1], ceil_mode = true} return a }",
     "max_pool"},
    {"largest_along_one_axis",
     "func f(x: f32[3, 2, 100]) { a: f32[3, 2, 32], i: i64[3, 2, 32] = max_pool(x) {kernel = [5], strides = "
     "[3]} return a }",
     "max_pool"},
    {"largest_of_three_axes",
     "func f(x: f32[1, 2, 4, 6, 20]) { a: f32[1, 2, 2, 3, 19], i: i64[1, 2, 2, 3, 19] = max_pool(x) {kernel "
     "= "
     "[2, 2, 2], strides = [2, 2, 1]} return a }",
     "max_pool"},
    {"large_parts_side_by_side",
     "func f(x: f32[40, 3, 300], y: f32[40, 300, 2]) { t: f32[40, 2, 300] = transpose(y) {permutation = [0, "
     "2, 1]} "
     "a: f32[40, 5, 300] = concat(x, t) {axis = 1} return a }",
     "concat"},
    {"part_of_a_large_array",
     "func f(x: f32[30, 60, 20], y: f32[10, 60, 7]) { a: f32[30, 60, 20] = update_slice(x, y) {starts = [29, "
     "3], axes = [0, 2], steps = [-2, 2]} return a }",
     "update_slice"},
    {"mean_of_windows",
     "func f(x: f32[2, 3, 9, 8]) { a: f32[2, 3, 5, 4] = avg_pool(x) {kernel = [3, 3], strides = [2, 2], pads "
     "= "
     "[1, 1, 1, 1], ceil_mode = false} return a }",
     "avg_pool"},
    {"mean_with_padding_and_partial_windows",
     "func f(x: f32[1, 2, 10]) { a: f32[1, 2, 4] = avg_pool(x) {kernel = [4], strides = [3], pads = [1, 1], "
     "ceil_mode = true, count_include_pad = true} return a }",
     "avg_pool"},
};

INSTANTIATE_TEST_SUITE_P(Cpu, Library, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

/// Padding counts as zeros, and zero times infinity is no number, whatever method has the finite weights.
const LibraryCase padded_cases[] = {
    {"one_axis",
     "func f(x: f32[2, 4, 8], w: f32[3, 4, 1]) { y: f32[2, 3, 6] = conv(x, w) {pads = [1, 2], strides = [2]} "
     "return y }",
     ""},
    {"few_channels",
     "func f(x: f32[2, 3, 9, 9], w: f32[8, 3, 3, 3]) { y: f32[2, 8, 9, 9] = conv(x, w) {pads = [1, 1, 1, 1]} "
     "return y }",
     ""},
    {"by_winograd",
     "func f(x: f32[2, 32, 12, 12], w: f32[32, 32, 3, 3]) { y: f32[2, 32, 12, 12] = conv(x, w) "
     "{pads = [1, 1, 1, 1]} return y }",
     "",
     {},
     1e-5},
    {"by_winograd_without_padding",
     "func f(x: f32[2, 32, 12, 12], w: f32[32, 32, 3, 3]) { y: f32[2, 32, 10, 10] = conv(x, w) return y }",
     "",
     {},
     1e-5},
    {"three_axes",
     "func f(x: f32[1, 8, 5, 9, 9], w: f32[16, 8, 3, 3, 3]) { y: f32[1, 16, 5, 9, 9] = conv(x, w) "
     "{pads = [1, 1, 1, 1, 1, 1]} return y }",
     ""},
    {"depthwise",
     "func f(x: f32[2, 16, 16, 16], w: f32[16, 1, 3, 3]) { y: f32[2, 16, 16, 16] = conv(x, w) "
     "{groups = 16, pads = [1, 1, 1, 1]} return y }",
     ""},
};

class InfiniteWeights : public testing::TestWithParam<LibraryCase> {};

TEST_P(InfiniteWeights, multiply_padding_as_the_reference_does) {
  Program program = program_of(GetParam());
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  for (const float weight : {1.0f, INFINITY, -INFINITY, NAN, 2.0f}) {
    program.inputs[1].values<float>()[0] = weight;
    const auto expected = value_or_throw(run_reference(*program.function, program, {}));
    const auto got = value_or_throw(run_planned(program, {}, *cpu, cpu->target(), {}));
    const auto a = expected[0].values<float>(), b = got[0].values<float>();
    const double lost = GetParam().of_largest * largest_of(a);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::isfinite(a[i]), std::isfinite(b[i])) << "weight " << weight << ", element " << i;
      if (!std::isfinite(a[i])) {
        ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])));
      } else {
        ASSERT_NEAR(a[i], b[i], std::max(rounding_of(a[i]), lost));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, InfiniteWeights, testing::ValuesIn(padded_cases),
                         [](const auto& test) { return std::string(test.param.name); });

/// Some step is a library's, and every bit of the results is the reference's.
void expect_exact(const std::string& text, const std::vector<op::Extents>& shapes, std::int32_t largest,
                  std::optional<std::int32_t> least = {}) {
  SCOPED_TRACE(text);
  Program program{.function = value_or_throw(ir::parse_function(text))};
  std::mt19937 source(3);
  std::uniform_int_distribution<std::int32_t> from(least.value_or(-largest), largest);
  for (const op::Extents& shape : shapes) {
    program.inputs.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::i32, shape)));
    for (std::int32_t& value : program.inputs.back().values<std::int32_t>()) value = from(source);
  }
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  const auto planned = value_or_throw(compiler::plan_function(program.function, cpu->target()));
  const auto& steps = planned.plan->steps;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const plan::Step& step) {
    return step.kind == plan::StepKind::library;
  })) << to_text(*planned.plan);
  EXPECT_EQ(difference(value_or_throw(run_reference(*program.function, program, {})),
                       value_or_throw(run_planned(program, {}, *cpu, cpu->target(), {}))),
            std::nullopt);
}

/// Integers of a size: products of small ones go through floats, exactly; large ones wrap.
class Integers : public testing::TestWithParam<std::int32_t> {};

TEST_P(Integers, products_of_one_element_are_exact) {
  const Program program{
      .function = value_or_throw(
          ir::parse_function("func f(x: i32[1, 1], w: i32[1, 1]) { a: i32[1, 1] = matmul(x, w) return a }")),
      .inputs = {op::HostTensor::of<std::int32_t>(op::Dtype::i32, {1, 1}, std::array{GetParam()}),
                 op::HostTensor::of<std::int32_t>(op::Dtype::i32, {1, 1}, std::array{-GetParam()})}};
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  EXPECT_EQ(difference(value_or_throw(run_reference(*program.function, program, {})),
                       value_or_throw(run_planned(program, {}, *cpu, cpu->target(), {}))),
            std::nullopt);
}

TEST_P(Integers, products_are_exact) {
  for (const std::int64_t depth : {0, 1, 7, 300, 1500})
    expect_exact(cat("func f(x: i32[2, 5, ", depth, "], w: i32[", depth, ", 6], y: i32[2, ", depth,
                     ", 3]) { a: i32[2, 5, 6] = matmul(x, w) b: i32[2, 5, 3] = matmul(x, y) return a, b }"),
                 {{2, 5, depth}, {depth, 6}, {2, depth, 3}}, GetParam());
}

TEST_P(Integers, convolutions_are_exact) {
  expect_exact(
      "func f(x: i32[2, 3, 9, 8], w: i32[5, 3, 3, 3]) { a: i32[2, 5, 9, 8] = conv(x, w) {pads = [1, 1, "
      "1, 1]} return a }",
      {{2, 3, 9, 8}, {5, 3, 3, 3}}, GetParam());
  expect_exact(
      "func f(x: i32[1, 40, 37, 41], w: i32[16, 40, 3, 3], b: i32[16]) { a: i32[1, 16, 37, 41] = conv(x, "
      "w, b) {pads = [1, 1, 1, 1]} return a }",
      {{1, 40, 37, 41}, {16, 40, 3, 3}, {16}}, GetParam());
  expect_exact(
      "func f(x: i32[2, 4, 11, 9], w: i32[12, 2, 3, 2], b: i32[12]) { a: i32[2, 12, 5, 5] = conv(x, w, "
      "b) {groups = 2, strides = [2, 2], dilations = [2, 1], pads = [1, 0, 2, 2]} return a }",
      {{2, 4, 11, 9}, {12, 2, 3, 2}, {12}}, GetParam());
  expect_exact(
      "func f(x: i32[2, 8, 6, 6], w: i32[8, 1, 3, 3], b: i32[8]) { a: i32[2, 8, 3, 6] = conv(x, w, b) "
      "{groups = 8, strides = [2, 1], pads = [1, 1, 1, 1]} return a }",
      {{2, 8, 6, 6}, {8, 1, 3, 3}, {8}}, GetParam());
  expect_exact("func f(x: i32[1, 3, 20], w: i32[4, 3, 5]) { a: i32[1, 4, 16] = conv(x, w) return a }",
               {{1, 3, 20}, {4, 3, 5}}, GetParam());
  expect_exact(
      "func f(x: i32[1, 2, 4, 5, 6], w: i32[6, 2, 2, 3, 1]) { a: i32[1, 6, 4, 4, 8] = conv(x, w) {pads = "
      "[0, 1, 1, 1, 0, 1]} return a }",
      {{1, 2, 4, 5, 6}, {6, 2, 2, 3, 1}}, GetParam());
  // Windows that see nothing but padding, and nothing at all.
  expect_exact(
      "func f(x: i32[1, 2, 1, 1], w: i32[4, 2, 1, 1]) { a: i32[1, 4, 7, 7] = conv(x, w) {pads = [3, 3, 3, "
      "3]} return a }",
      {{1, 2, 1, 1}, {4, 2, 1, 1}}, GetParam());
  expect_exact("func f(x: i32[0, 2, 5, 5], w: i32[4, 2, 3, 3]) { a: i32[0, 4, 3, 3] = conv(x, w) return a }",
               {{0, 2, 5, 5}, {4, 2, 3, 3}}, GetParam());
}

TEST_P(Integers, convolutions_of_views_are_exact) {
  expect_exact(
      "func f(x: i32[8, 7, 3, 2], w: i32[3, 3, 3, 4]) { t: i32[2, 3, 7, 8] = transpose(x) {permutation = "
      "[3, 2, 1, 0]} u: i32[4, 3, 3, 3] = transpose(w) {permutation = [3, 2, 1, 0]} a: i32[2, 4, 5, 6] = "
      "conv(t, u) return a }",
      {{8, 7, 3, 2}, {3, 3, 3, 4}}, GetParam());
}

/// The elements of a quantised model less their zero point, whatever it is.
TEST(Library, convolutions_of_bytes_are_exact) {
  for (const std::int32_t zero : {0, 3, 128, 255})
    expect_exact(
        "func f(x: i32[1, 8, 12, 13], w: i32[6, 8, 3, 3], b: i32[6]) { a: i32[1, 6, 12, 13] = conv(x, w, b) "
        "{pads = [1, 1, 1, 1]} return a }",
        {{1, 8, 12, 13}, {6, 8, 3, 3}, {6}}, 255 - zero, -zero);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Integers, testing::Values(0, 1, 127, 255, 4095, 70'000, 2'147'483'647));

/// Who wants to know where the largest elements are gets it from the card's own kernel.
TEST(Library, indices_of_windows_are_not_lost) {
  const LibraryCase given{"",
                          "func f(x: f32[1, 1, 4]) { a: f32[1, 1, 2], i: i64[1, 1, 2] = max_pool(x) {kernel "
                          "= [2], strides = [2]} return i }",
                          "max_pool"};
  const Program program = program_of(given);
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  const auto planned = value_or_throw(compiler::plan_function(program.function, cpu->target()));
  EXPECT_EQ(planned.plan->steps[0].kind, plan::StepKind::call);
  EXPECT_EQ(difference(value_or_throw(run_reference(*program.function, program, {})),
                       value_or_throw(run_planned(program, {}, *cpu, cpu->target(), {}))),
            std::nullopt);
}

/// What a function takes is hidden behind the memory that a loop waits for, not behind a product.
TEST(Tiles, functions_go_where_memory_hides_them) {
  const auto steps_at = [](double operation_ns) {
    const pattern::StepCosts costs{.operation_ns = operation_ns};
    const runtime::cpu::CpuDevice device(
        {.target = {.name = "cpu", .sources = {compiler::fused_regions(costs)}},
         .costs = {.operation_ns = operation_ns}});
    const ir::FunctionRef function = value_or_throw(ir::parse_function(
        "func f(x: f32[256, 512], y: f32[256, 512], w: f32[512, 512]) { a: f32[256, 512] = matmul(x, w) "
        "b: f32[256, 512] = gelu(a) c: f32[256, 512] = mul(b, y) return c }"));
    return steps_of(*value_or_throw(compiler::plan_function(function, device.target())).plan);
  };
  EXPECT_EQ(steps_at(0.01), "matmul kernel");
  EXPECT_EQ(steps_at(1e-9), "matmul+gelu kernel") << "where arithmetic is free";
}

/// Two chains of products that do not depend on each other, and meet.
TEST(SideBySide, chains_do_not_disturb_each_other) {
  std::string text = "func f(x: f32[96, 96], y: f32[96, 96], w: f32[96, 96]) {";
  for (const char chain : {'x', 'y'})
    for (int i = 0; i < 6; ++i)
      text +=
          cat(" ", chain, i, ": f32[96, 96] = matmul(", i == 0 ? std::string(1, chain) : cat(chain, i - 1),
              ", w) ", chain, "t", i, ": f32[96, 96] = neg(", chain, i, ")");
  text += " z: f32[96, 96] = matmul(x5, y5) return z, xt3 }";
  const Program program = program_of({"", text.c_str(), ""});
  const auto device = std::make_shared<runtime::cpu::CpuDevice>(runtime::cpu::CpuOptions{
      .threads = 2, .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
  const auto planned = value_or_throw(compiler::plan_function(program.function, device->target()));
  runtime::cpu::CpuExecutable executable(device, planned.plan, runtime::MemoryPool::create());
  const std::vector<op::Layout> layouts(3, op::contiguous({96, 96}));
  value_or_throw(executable.prepare({}, layouts));
  ASSERT_FALSE(executable.waves().empty());
  EXPECT_TRUE(executable.waves()[0].is_side_by_side);
  EXPECT_EQ(executable.waves()[0].tasks.size(), 2U);
  const auto expected = value_or_throw(run_reference(*program.function, program, {}));
  for (int run = 0; run < 20; ++run) {
    const auto got = value_or_throw(run_planned(program, {}, *device, device->target(), {}));
    for (std::size_t r = 0; r < got.size(); ++r) {
      const auto a = expected[r].values<float>(), b = got[r].values<float>();
      const float largest = std::abs(
          *std::max_element(a.begin(), a.end(), [](float p, float q) { return std::abs(p) < std::abs(q); }));
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * largest) << "run " << run;
    }
  }
}

/// Better code comes while a plan is launched again and again, on several threads. Nobody sees it.
TEST(BetterCode, takes_its_place_in_a_plan_that_runs) {
  if (const auto llvm = runtime::cpu::Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  const runtime::CodeStore nowhere("");
  const Program program =
      program_of({"",
                  "func f(x: f32[64, 300], w: f32[300, 40]) { a: f32[64, 300] = mul(x, $0:f32) b: f32[64, "
                  "300] = tanh(a) "
                  "c: f32[64, 300] = softmax(b) d: f32[64, 40] = matmul(c, w) e: f32[64, 40] = layer_norm(d) "
                  "s: f32[40] = sum(e) {axes = [0]} return e, s, b }",
                  ""});
  const auto device = std::make_shared<runtime::cpu::CpuDevice>(
      runtime::cpu::CpuOptions{.threads = 2,
                               .kernels = {.store = &nowhere},
                               .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
  const auto planned = value_or_throw(compiler::plan_function(program.function, device->target()));
  const auto launch_often = [&](std::uint64_t& improvements) {
    runtime::cpu::CpuExecutable executable(device, planned.plan, runtime::MemoryPool::create());
    value_or_throw(executable.prepare({}, std::vector{op::contiguous({64, 300}), op::contiguous({300, 40})}));
    std::vector<std::vector<std::byte>> results;
    for (const plan::OutputBuffer& buffer : executable.binding().buffers)
      results.emplace_back(static_cast<std::size_t>(buffer.bytes));
    std::vector<std::byte*> inputs, outputs;
    for (const op::HostTensor& input : program.inputs) inputs.push_back(input.array().data);
    for (auto& result : results) outputs.push_back(result.data());
    const std::vector parameters{std::bit_cast<std::uint64_t>(0.5)};
    const auto launch = [&] {
      for (auto& result : results) std::fill(result.begin(), result.end(), std::byte{7});
      value_or_throw(executable.run({.inputs = inputs, .parameters = parameters, .outputs = outputs}));
      return results;
    };
    const auto first = launch();
    for (int i = 0; i < 200; ++i) EXPECT_EQ(launch(), first) << "launch " << i;
    device->improver()->wait();
    improvements = device->improver()->improvements();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(), first);
  };
  std::array<std::uint64_t, 2> improvements{};
  std::thread other([&] { launch_often(improvements[1]); });
  launch_often(improvements[0]);
  other.join();
  EXPECT_GT(improvements[0], 0U);
}

/// The reference runs the same plan, since every step carries its ops.
TEST(Library, plans_run_on_the_reference_too) {
  for (const LibraryCase& given : cases) {
    const Program program = program_of(given);
    const auto cpu = value_or_throw(engine::find_device("cpu"));
    const auto reference = value_or_throw(engine::find_device("reference"));
    const auto expected = value_or_throw(run_reference(*program.function, program, program.first_parameters));
    const auto got =
        value_or_throw(run_planned(program, {}, *reference, cpu->target(), program.first_parameters));
    for (std::size_t r = 0; r < got.size(); ++r) {
      const auto a = expected[r].values<float>(), b = got[r].values<float>();
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << given.name;
    }
  }
}

}  // namespace
}  // namespace tessera::differential
