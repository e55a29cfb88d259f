#include "tessera/nn/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tessera/nn/layers.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"

using namespace tessera;
using optim::OptimizerState;
using optim::Parameters;
using tessera::fixture::message_of;

namespace {

using Doubles = std::vector<double>;
const Doubles first{1, -2, 3}, slope{0.5, 0.25, -4};

Parameters one(const Doubles& values) { return {{"w", from_vector(values, {3})}}; }
Doubles values(const Parameters& parameters) { return parameters.at("w").to_vector<double>(); }

void expect_near(const Doubles& got, const Doubles& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
}

TEST(Sgd, without_momentum_goes_down_the_slope) {
  Parameters p = one(first);
  OptimizerState state;
  optim::sgd(p, one(slope), state, 0.1);
  expect_near(values(p), {0.95, -2.025, 3.4});
  EXPECT_TRUE(state.slots.empty());
  EXPECT_EQ(state.steps, 1);
}

TEST(Sgd, momentum_and_weight_decay_follow_the_formula) {
  Parameters p = one(first);
  OptimizerState state;
  Doubles w = first, v(3);
  for (const double rate : {0.1, 0.05, 0.2}) {
    optim::sgd(p, one(slope), state, rate, {.momentum = 0.9, .weight_decay = 0.01});
    for (int i = 0; i < 3; ++i) {
      v[i] = 0.9 * v[i] + slope[i] + 0.01 * w[i];
      w[i] -= rate * v[i];
    }
    expect_near(values(p), w);
  }
}

TEST(Adam, the_first_step_is_the_rate_in_the_direction_of_the_slope) {
  // Both means are corrected to the gradient itself: g / (|g| + epsilon).
  Parameters p = one(first);
  OptimizerState state;
  optim::adam(p, one(slope), state, 0.1, {.epsilon = 0});
  expect_near(values(p), {0.9, -2.1, 3.1});
}

TEST(Adam, two_steps_by_hand) {
  // g1 = 1, g2 = -3, rate 0.1, betas 0.5 and 0.75, epsilon 0:
  //   m1 = 0.5, v1 = 0.25, step 1: 0.1 * 0.5/0.5 / sqrt(0.25/0.25) = 0.1
  //   m2 = 0.25 - 1.5 = -1.25, v2 = 0.1875 + 2.25 = 2.4375
  //   step 2: 0.1 * (-1.25/0.75) / sqrt(2.4375/0.4375)
  Parameters p{{"w", full({}, 0, {.dtype = f64})}};
  OptimizerState state;
  const optim::AdamOptions options{.beta1 = 0.5, .beta2 = 0.75, .epsilon = 0};
  optim::adam(p, {{"w", full({}, 1, {.dtype = f64})}}, state, 0.1, options);
  EXPECT_NEAR(p["w"].item<double>(), -0.1, 1e-15);
  optim::adam(p, {{"w", full({}, -3, {.dtype = f64})}}, state, 0.1, options);
  EXPECT_NEAR(p["w"].item<double>(), -0.1 + 0.1 * (1.25 / 0.75) / std::sqrt(2.4375 / 0.4375), 1e-15);
}

struct PlainAdam {
  Doubles w = first, m = Doubles(3), v = Doubles(3);
  int t = 0;

  void step(double rate, double gradient_decay, double shrink) {
    ++t;
    for (int i = 0; i < 3; ++i) {
      const double g = slope[i] * t + gradient_decay * w[i];  // another gradient at each step
      w[i] *= 1 - rate * shrink;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double mean = m[i] / (1 - std::pow(0.9, t)), square = v[i] / (1 - std::pow(0.999, t));
      w[i] -= rate * mean / (std::sqrt(square) + 1e-8);
    }
  }
};

Parameters slope_at(int t) { return one({slope[0] * t, slope[1] * t, slope[2] * t}); }

TEST(Adam, follows_the_formula_with_weight_decay_in_the_gradient) {
  Parameters p = one(first);
  OptimizerState state;
  PlainAdam plain;
  for (int t = 1; t <= 5; ++t) {
    optim::adam(p, slope_at(t), state, 0.1 / t, {.weight_decay = 0.3});
    plain.step(0.1 / t, 0.3, 0);
    expect_near(values(p), plain.w);
  }
}

TEST(Adamw, shrinks_parameters_beside_the_gradient) {
  Parameters p = one(first);
  OptimizerState state;
  PlainAdam plain;
  for (int t = 1; t <= 5; ++t) {
    optim::adamw(p, slope_at(t), state, 0.1 / t, {.weight_decay = 0.3});
    plain.step(0.1 / t, 0, 0.3);
    expect_near(values(p), plain.w);
  }
}

TEST(Clip, scales_to_the_norm_and_only_down) {
  Parameters g{{"a", from_vector<double>({3, 0}, {2})}, {"b", from_vector<double>({4}, {1})}};
  Parameters same = g;
  EXPECT_DOUBLE_EQ(optim::clip_by_norm(g, 1).item<double>(), 5);
  EXPECT_DOUBLE_EQ(g["a"].item<double>({0}), 0.6);
  EXPECT_DOUBLE_EQ(g["b"].item<double>({0}), 0.8);
  EXPECT_DOUBLE_EQ(optim::clip_by_norm(same, 6).item<double>(), 5);
  EXPECT_EQ(same["b"].item<double>({0}), 4);
}

TEST(Clip, zeros_stay_zeros) {
  Parameters g = one({0, 0, 0});
  EXPECT_EQ(optim::clip_by_norm(g, 1).item<double>(), 0);
  EXPECT_EQ(values(g), (Doubles{0, 0, 0}));
}

TEST(Optimizer, a_missing_gradient_is_named) {
  Parameters p = one(first);
  OptimizerState state;
  try {
    optim::sgd(p, {{"v", p["w"]}}, state, 0.1);
    FAIL();
  } catch (const Exception& e) {
    EXPECT_NE(e.error().to_text().find("nothing is named 'w'; there are: v"), std::string::npos);
  }
}

/// The recorded calls behind a tensor as one expression, with a # for each scalar whatever its value.
std::string structure(const Tensor& tensor) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> known{{{0, 0}, "#"}};
  for (const NodeInfo& node : tensor.graph().nodes()) {
    std::string text = node.op.empty() ? "leaf" : node.op + "(";
    for (const NodeId& input : node.inputs) text += known.at({input.high, input.low}) + " ";
    for (const std::int64_t size : node.shape) text += std::to_string(size) + " ";
    known[{node.id.high, node.id.low}] = text + (node.op.empty() ? "" : ")");
  }
  const NodeId root = node_id(tensor);
  return known.at({root.high, root.low});
}

TEST(Optimizer, a_changing_rate_leaves_the_graph_as_it_is) {
  Parameters p = one(first);
  OptimizerState state;
  std::string before;
  for (const double rate : {0.1, 0.05, 0.0}) {
    const nn::Loss loss = [](const Parameters& q) { return sum(q.at("w") * q.at("w")); };
    optim::adamw(p, nn::loss_and_gradients(loss, p).gradients, state, rate);
    const auto now = structure(p["w"]);
    EXPECT_NE(now.find("sqrt(add(mul("), std::string::npos) << now;
    EXPECT_NE(now.find("#"), std::string::npos) << now;
    if (!before.empty()) {
      EXPECT_EQ(now, before);
    }
    before = now;
    optim::eval(p, state);
  }
}

TEST(Optimizer, parameters_that_require_gradients_go_on_doing_so) {
  Parameters p = one(first);
  p["w"].requires_grad();
  OptimizerState state;
  for (int i = 0; i < 2; ++i) {
    sum(p["w"] * p["w"]).backward();
    optim::sgd(p, {{"w", p["w"].grad()}}, state, 0.25);
  }
  expect_near(values(p), {0.25, -0.5, 0.75});  // each step halves
}

TEST(Optimizer, a_wrong_gradient_changes_nothing) {
  Parameters p{{"a", ones({2})}, {"b", ones({4})}};
  OptimizerState state;
  const auto expect_refused = [&](const Parameters& gradients, const char* said) {
    for (const bool use_adam : {false, true}) {
      const std::string message = message_of([&] {
        use_adam ? optim::adam(p, gradients, state, 0.1)
                 : optim::sgd(p, gradients, state, 0.1, {.momentum = 0.9});
      });
      EXPECT_NE(message.find(said), std::string::npos) << message;
      EXPECT_NE(message.find("optimizer_test.cpp"), std::string::npos) << message;
    }
    EXPECT_EQ(state.steps, 0);
    EXPECT_TRUE(state.slots.empty());
    EXPECT_EQ(p["a"].to_vector<float>(), (std::vector<float>{1, 1}));
  };
  expect_refused({{"a", ones({2})}}, "'b'");
  expect_refused({{"a", ones({2})}, {"b", ones({2, 4})}}, "f32[2, 4]");
  expect_refused({{"a", ones({2})}, {"b", ones({1})}}, "f32[1]");
  expect_refused({{"a", ones({2})}, {"b", ones({4}, {.dtype = f64})}}, "f64[4]");
  expect_refused({{"a", ones({2})}, {"b", Tensor()}}, "empty");
}

TEST(Optimizer, memory_of_many_steps_is_flat) {
  auto engine = Engine::create({.seed = 1});
  Parameters p{{"w", nn::glorot_uniform(4, 3, {.engine = engine})}};
  const Tensor x = rand({5, 4}, {.engine = engine}).eval();
  OptimizerState state;
  const nn::Loss loss = [&](const Parameters& q) {
    return mean(square(nn::dropout(nn::linear(x, q.at("w")), {.rate = 0.5})));
  };
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      auto found = nn::loss_and_gradients(loss, p);
      optim::clip_by_norm(found.gradients, 1);
      optim::adam(p, found.gradients, state, 0.01);
      optim::eval(p, state);
    }
    return engine->memory();
  };
  run(10);
  engine->wait_for_plans();  // what a plan keeps is there from here on
  const auto early = run(100), late = run(9900);
  EXPECT_EQ(early.used, late.used);
  EXPECT_EQ(early.peak, late.peak);
}

TEST(HalfPrecision, adam_learns_and_remembers_in_f32) {
  for (const Dtype dtype : {f16, bf16}) {
    Parameters p{{"w", full({4}, 1, {.dtype = dtype})}};
    OptimizerState state;
    for (int i = 0; i < 20; ++i) {
      // Squares of these gradients are below everything f16 stores.
      const Parameters gradients{{"w", full({4}, 1e-5, {.dtype = dtype})}};
      optim::adam(p, gradients, state, 0.05);
      optim::eval(p, state);
    }
    EXPECT_EQ(p.at("w").dtype(), dtype);
    EXPECT_EQ(state.slots.at("square/w").dtype(), f32);
    EXPECT_GT(state.slots.at("square/w").item<double>({0}), 0);
    EXPECT_NEAR(p.at("w").item<double>({3}), 0, 0.05);
  }
}

TEST(HalfPrecision, a_state_of_halves_goes_on_in_f32) {
  Parameters p{{"w", full({2}, 1, {.dtype = f16})}};
  OptimizerState state;
  state.slots["mean/w"] = full({2}, 0.5, {.dtype = f16});
  optim::adamw(p, {{"w", full({2}, 0, {.dtype = f16})}}, state, 0.01);
  EXPECT_EQ(state.slots.at("mean/w").dtype(), f32);
  EXPECT_NEAR(state.slots.at("mean/w").item<double>({0}), 0.45, 1e-6);
}

TEST(HalfPrecision, clipping_keeps_dtypes) {
  Parameters gradients{{"a", full({4}, 300, {.dtype = f16})},
                       {"b", full({3}, 2, {.dtype = f32})},
                       {"c", full({1}, 0, {.dtype = bf16})}};
  const Tensor norm = optim::clip_by_norm(gradients, 6);
  EXPECT_EQ(norm.dtype(), f32);
  EXPECT_NEAR(norm.item<double>(), std::sqrt(4 * 300.0 * 300 + 3 * 4), 1e-2);  // 300 * 300 is no f16
  EXPECT_EQ(gradients.at("a").dtype(), f16);
  EXPECT_EQ(gradients.at("b").dtype(), f32);
  EXPECT_EQ(gradients.at("c").dtype(), bf16);
  EXPECT_NEAR(gradients.at("a").item<double>({0}), 3, 1e-2);
}

TEST(Optimizer, misuse_is_said_at_the_callers_line_and_changes_nothing) {
  Parameters p = one(first);
  OptimizerState state;
  state.slots["mean/w"] = zeros({7}, {.dtype = f64});
  const std::string shape = message_of([&] { optim::adam(p, one(slope), state, 0.1); });
  EXPECT_NE(shape.find("the state 'mean/w' is f64[7], the parameter is f64[3]"), std::string::npos) << shape;
  EXPECT_NE(shape.find("optimizer_test.cpp"), std::string::npos) << shape;
  EXPECT_EQ(state.steps, 0);
  Parameters integers{{"w", arange(3)}};
  const std::string dtype = message_of([&] { optim::sgd(integers, {{"w", arange(3)}}, state, 0.1); });
  EXPECT_NE(dtype.find("must be a float"), std::string::npos) << dtype;
  Parameters empty{{"w", Tensor()}};
  EXPECT_NE(message_of([&] { (void)optim::clip_by_norm(empty, 1); }).find("'w' is empty"), std::string::npos);
}

}  // namespace
