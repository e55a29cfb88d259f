// Training steps as compiled functions: state in, state out.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/nn/parameters.h"
#include "tessera/nn/training_state.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

struct Batch {
  Tensor x, y;
  static constexpr auto fields() { return std::tuple{field("x", &Batch::x), field("y", &Batch::y)}; }
};

nn::LossAndGradients gradients_of(const nn::Parameters& parameters, const Batch& batch) {
  const auto loss = [&](const nn::Parameters& p) {
    const Tensor off = nn::linear(batch.x, p.at("w"), p.at("b")) - batch.y;
    return mean(off * off);
  };
  return nn::loss_and_gradients(loss, parameters);
}

struct Fixture {
  std::shared_ptr<Engine> engine = Engine::create({.plans = {.threshold = 1000, .wait = true}});

  nn::Parameters parameters() const {
    return {{"w", full({4, 2}, 0.5, {.engine = engine}).eval()},
            {"b", zeros({2}, {.engine = engine}).eval()}};
  }
  Batch batch(std::int64_t size) const {
    const auto values = [&](const Shape& shape) {
      std::vector<float> out;
      for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) out.push_back(std::sin(static_cast<float>(i)));
      return from_vector(out, shape, {.engine = engine});
    };
    return {values({size, 4}), values({size, 2})};
  }
};

std::vector<float> flat(const nn::Parameters& parameters) {
  std::vector<float> out;
  for (const auto& [name, value] : parameters)
    for (const float v : value.to_vector<float>()) out.push_back(v);
  return out;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

static_assert(TensorTree<nn::Parameters> && TensorTree<optim::OptimizerState> &&
              TensorTree<nn::TrainingState> && TensorTree<nn::LossAndGradients>);

}  // namespace

TEST(CompiledStep, Trap_U15_AdamInAStructIsTheSameAsWithoutCompiling) {
  const Fixture f;
  const auto train = [](nn::TrainingState state, const Batch& batch, double rate) {
    const auto [loss, gradients] = gradients_of(state.parameters, batch);
    optim::adam(state.parameters, gradients, state.optimizer, rate);
    return std::pair{loss, state};
  };
  const auto compiled = compile(train);
  nn::TrainingState plain{.parameters = f.parameters()}, planned{.parameters = f.parameters()};
  for (int i = 0; i < 20; ++i) {
    const Batch batch = f.batch(i % 2 == 0 ? 8 : 6);
    const double rate = 0.1 / (i + 1);
    auto expected = train(plain, batch, rate);
    eval(expected);
    plain = expected.second;
    auto got = compiled(planned, batch, rate);
    eval(got);
    planned = got.second;
    EXPECT_NEAR(got.first.item<float>(), expected.first.item<float>(), 1e-5);
  }
  EXPECT_EQ(planned.optimizer.steps, 20);
  expect_near(flat(planned.parameters), flat(plain.parameters));
  expect_near(flat(planned.optimizer.slots), flat(plain.optimizer.slots));
  EXPECT_LE(f.engine->statistics().plans_made, 4U);
}

TEST(CompiledStep, WritesTheStateThatItTakesByReference) {
  const Fixture f;
  const auto train = compile([](nn::Parameters& p, optim::OptimizerState& state, const Batch& batch) {
    const auto [loss, gradients] = gradients_of(p, batch);
    optim::sgd(p, gradients, state, 0.1, {.momentum = 0.9});
    return loss;
  });
  nn::Parameters p = f.parameters();
  optim::OptimizerState state;
  const Batch batch = f.batch(8);
  float before = 1e9F;
  for (int i = 0; i < 6; ++i) {
    const Tensor loss = train(p, state, batch);
    eval(std::tie(loss, p, state));
    EXPECT_LT(loss.item<float>(), before);
    before = loss.item<float>();
  }
  EXPECT_LE(f.engine->statistics().plans_made, 3U);
  EXPECT_NE(f.engine->report().components.at(0).tier, engine::Tier::streamed);
}
