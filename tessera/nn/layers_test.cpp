#include "tessera/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tensor/gradient.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

using Doubles = std::vector<double>;

Tensor doubles(const Doubles& values, Shape shape) { return from_vector(values, std::move(shape)); }

TEST(Layers, linear_multiplies_and_adds) {
  const Tensor x = doubles({1, 2}, {1, 2}), w = doubles({1, 0, 2, 0, 1, 3}, {2, 3});
  EXPECT_EQ(nn::linear(x, w).to_vector<double>(), (Doubles{1, 2, 8}));
  EXPECT_EQ(nn::linear(x, w, doubles({10, 20, 30}, {3})).to_vector<double>(), (Doubles{11, 22, 38}));
}

TEST(Layers, linear_reports_the_line_of_its_caller) {
  const std::string message = message_of([] { (void)nn::linear(zeros({2, 3}), zeros({4, 5})); });
  EXPECT_NE(message.find("layers_test.cpp"), std::string::npos) << message;
}

TEST(Layers, embedding_takes_rows_and_its_gradient_counts_them) {
  const Tensor indices = from_vector<std::int64_t>({2, 0, 2, 2}, {2, 2});
  const auto f = [&](const Tensor& table) { return sum(nn::embedding(table, indices)); };
  const Tensor table = doubles({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(nn::embedding(table, indices).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(nn::embedding(table, indices).to_vector<double>(), (Doubles{5, 6, 1, 2, 5, 6, 5, 6}));
  EXPECT_EQ(grad(f)(table).to_vector<double>(), (Doubles{1, 1, 0, 0, 3, 3}));
}

TEST(Layers, dropout_keeps_the_expected_value) {
  auto engine = Engine::create({.seed = 7});
  const Tensor x = full({10000}, 3, {.engine = engine});
  const auto values = nn::dropout(x, {.rate = 0.25}).to_vector<float>();
  double zeros = 0;
  for (float v : values) {
    if (v == 0)
      ++zeros;
    else
      EXPECT_FLOAT_EQ(v, 4);
  }
  // Four standard deviations of a binomial distribution.
  EXPECT_NEAR(zeros, 2500, 4 * std::sqrt(10000 * 0.25 * 0.75));
}

TEST(Layers, dropout_of_nothing_changes_nothing_and_of_everything_is_refused) {
  const Tensor x = arange(6, {.dtype = f64});
  EXPECT_EQ(nn::dropout(x, {.rate = 0}).to_vector<double>(), x.to_vector<double>());
  EXPECT_NE(message_of([&] { (void)nn::dropout(x, {.rate = 1}); }).find("the rate is 1"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)nn::dropout(x, {.rate = -0.1}); }).find("dropout: the rate"),
            std::string::npos);
}

/// Attention of one head, written out.
Doubles plain_attention(const Doubles& x, const Doubles& in, const Doubles& out, int length, int width,
                        bool causal) {
  const auto project = [&](int row, int part, int column) {
    double sum = 0;
    for (int k = 0; k < width; ++k) sum += x[row * width + k] * in[k * 3 * width + part * width + column];
    return sum;
  };
  Doubles seen(x.size()), result(x.size());
  for (int i = 0; i < length; ++i) {
    double total = 0;
    for (int j = 0; j < (causal ? i + 1 : length); ++j) {
      double score = 0;
      for (int c = 0; c < width; ++c) score += project(i, 0, c) * project(j, 1, c);
      const double weight = std::exp(score / std::sqrt(width));
      total += weight;
      for (int c = 0; c < width; ++c) seen[i * width + c] += weight * project(j, 2, c);
    }
    for (int c = 0; c < width; ++c) seen[i * width + c] /= total;
  }
  for (int i = 0; i < length; ++i)
    for (int c = 0; c < width; ++c)
      for (int k = 0; k < width; ++k) result[i * width + c] += seen[i * width + k] * out[k * width + c];
  return result;
}

TEST(Layers, self_attention_of_one_head_is_its_formula) {
  auto engine = Engine::create({.seed = 3});
  const CreateOptions options{.dtype = f64, .engine = engine};
  const Tensor x = randn({1, 4, 2}, options), in = randn({2, 6}, options), out = randn({2, 2}, options);
  for (const bool causal : {false, true}) {
    const auto got =
        nn::self_attention(x, {in, {}, out, {}}, {.heads = 1, .causal = causal}).to_vector<double>();
    const auto expected =
        plain_attention(x.to_vector<double>(), in.to_vector<double>(), out.to_vector<double>(), 4, 2, causal);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
  }
}

TEST(Layers, heads_of_self_attention_do_not_see_each_other) {
  // With identities as weights, a head gives for its part of the width what it gives alone.
  auto engine = Engine::create({.seed = 4});
  const CreateOptions options{.dtype = f64, .engine = engine};
  const Tensor x = randn({2, 3, 4}, options);
  const auto identities = [&](std::int64_t n) {
    const Tensor one = eye(n, {.dtype = f64, .engine = engine});
    return nn::SelfAttention{concat({one, one, one}, {.axis = 1}), {}, one, {}};
  };
  const Tensor both = nn::self_attention(x, identities(4), {.heads = 2});
  const Tensor alone = nn::self_attention(x.slice({{}, {}, {2, 4}}), identities(2), {.heads = 1});
  EXPECT_EQ(both.slice({{}, {}, {2, 4}}).to_vector<double>(), alone.to_vector<double>());
  const std::string message = message_of([&] { (void)nn::self_attention(x, identities(4), {.heads = 3}); });
  EXPECT_NE(message.find("3 heads do not divide the width 4"), std::string::npos) << message;
}

TEST(Layers, first_weights_lie_within_their_limit) {
  auto engine = Engine::create({.seed = 1});
  const auto values = nn::glorot_uniform(50, 100, {.engine = engine}).to_vector<float>();
  ASSERT_EQ(values.size(), 5000u);
  double squares = 0;
  for (float v : values) {
    EXPECT_LE(std::abs(v), 0.2001);
    squares += v * v;
  }
  EXPECT_NEAR(squares / 5000, 0.04 / 3, 0.001);  // the variance of a uniform distribution in ±0.2
}

}  // namespace
