// A compiled function gives what the function itself would give if it ran now: nothing that it reads is a
// constant of its plan, and few plans serve all sizes.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"

using namespace tessera;
using engine::Tier;
using fixture::message_of;

namespace {

using Floats = std::vector<float>;

std::shared_ptr<Engine> patient_engine() {
  return Engine::create({.plans = {.threshold = 1000, .wait = true}});
}
Tensor filled(const std::shared_ptr<Engine>& engine, const Shape& shape, double value) {
  return full(shape, value, {.engine = engine}).eval();
}
Tier tier_of(const Engine& engine) { return engine.report().components.at(0).tier; }

/// What modules look like.
struct Affine {
  Tensor weight, bias;
  Tensor operator()(const Tensor& x) const { return matmul(x, weight) + bias; }
};

struct Momentum {
  NamedTensors velocity;
  int steps = 0;
  static constexpr auto fields() { return std::tuple{field("velocity", &Momentum::velocity)}; }
};
struct Training {
  NamedTensors weights;
  Momentum momentum;
  double rate = 0.1;
  std::string name = "sgd";
  static constexpr auto fields() {
    return std::tuple{field("weights", &Training::weights), field("momentum", &Training::momentum),
                      field("rate", &Training::rate), field("name", &Training::name)};
  }
};

/// Of somebody who knows nothing of trees.
struct Pose {
  Tensor position, speed;
};
struct Secret {
  Tensor inside;
};

}  // namespace

template <>
struct tessera::Tree<Pose> {
  static constexpr auto fields() {
    return std::tuple{field("position", &Pose::position), field("speed", &Pose::speed)};
  }
};

// ---- what changes outside is seen

TEST(Compile, Trap_U15_AHandleThatIsReadByReferenceIsReadAtEveryCall) {
  const auto engine = patient_engine();
  Tensor w = filled(engine, {3}, 2);
  const Tensor x = filled(engine, {3}, 1);
  const auto f = compile([&](const Tensor& a) { return a * w; });
  const auto expect = [&](const Floats& values) { EXPECT_EQ(f(x).to_vector<float>(), values); };
  expect({2, 2, 2});
  w.fill(5);
  expect({5, 5, 5});
  w.assign(filled(engine, {3}, 7));
  expect({7, 7, 7});
  w.update_slice({1}, filled(engine, {1}, 4));
  expect({7, 4, 7});
  w = w - 0.5 * w;
  expect({3.5, 2, 3.5});
  w = filled(engine, {3}, 9);
  expect({9, 9, 9});
  std::swap(w, w = filled(engine, {3}, 8));
  expect({8, 8, 8});
}

TEST(Compile, Trap_U15_WhatChangesIsASlotOfOnePlan) {
  const auto engine = patient_engine();
  Tensor w = filled(engine, {3}, 1);
  double rate = 1;
  const auto f = compile([&](const Tensor& a) { return a * w * rate + 1.0; });
  for (int i = 1; i <= 20; ++i) {
    w = filled(engine, {3}, i);
    rate = 1.0 / i;
    EXPECT_NEAR(f(filled(engine, {3}, 2)).item<float>({1}), 3, 1e-5);
    EXPECT_NE(tier_of(*engine), Tier::streamed);
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

// A tensor is a value: a copy, also in a function, keeps the version it was copied from.
TEST(Compile, Trap_U15_ACopyGivesWhatThePlainFunctionGives) {
  const auto engine = patient_engine();
  Tensor w = filled(engine, {2}, 2);
  const Tensor x = filled(engine, {2}, 1);
  const auto plain = [=](const Tensor& a) { return a * w; };
  const auto f = compile(plain);
  EXPECT_EQ(f(x).to_vector<float>(), plain(x).to_vector<float>());
  w.fill(5);
  EXPECT_EQ(f(x).to_vector<float>(), plain(x).to_vector<float>());
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{2, 2}));
  const auto now = compile([=](const Tensor& a) { return a * w; });
  EXPECT_EQ(now(x).to_vector<float>(), (Floats{5, 5}));
  const auto shared = std::make_shared<Tensor>(w);  // a copy of a pointer is no copy of the tensor
  const auto of_shared = compile([=](const Tensor& a) { return a * *shared; });
  EXPECT_EQ(of_shared(x).to_vector<float>(), (Floats{5, 5}));
  shared->fill(6);
  EXPECT_EQ(of_shared(x).to_vector<float>(), (Floats{6, 6}));
}

TEST(Compile, Trap_U15_StructsListsAndNumbersAreReadAtEveryCall) {
  const auto engine = patient_engine();
  Affine layer{filled(engine, {2, 2}, 1), filled(engine, {2}, 0)};
  std::vector<Tensor> terms;
  std::optional<Tensor> mask;
  double scale = 1;
  const auto f = compile([&](const Tensor& x) {
    Tensor y = layer(x) * scale;
    for (const Tensor& term : terms) y = y + term;
    return mask ? where(*mask, y, 0) : y;
  });
  const Tensor x = filled(engine, {1, 2}, 1);
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{2, 2}));
  layer.bias.fill(3);
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{5, 5}));
  terms.push_back(filled(engine, {2}, 10));
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{15, 15}));
  scale = 2;
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{20, 20}));
  mask = from_vector<std::int32_t>({0, 1}, {2}, {.engine = engine}) == 1;
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{0, 20}));
  terms.clear();
  mask.reset();
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{10, 10}));
}

TEST(Compile, Trap_U15_CapturesOfRegionsAndOfInnerFunctionsAreReadAtEveryCall) {
  const auto engine = patient_engine();
  Tensor w = filled(engine, {2}, 2);
  const auto inner = compile([&](const Tensor& a) { return a * w; });
  const auto outer = compile([&](const Tensor& a) { return inner(a) + inner(a * 2); });
  const auto branch = compile([&](const Tensor& a) {
    return cond(
        sum(a) > 0, [&] { return a * w; }, [&] { return inner(a) - w; });
  });
  const auto loop = compile([&](const Tensor& a) {
    return for_loop(3, [&](const Tensor&, const Tensors& s) { return Tensors{s[0] + inner(w)}; }, {a})[0];
  });
  const Tensor x = filled(engine, {2}, 1);
  for (const float value : {2.0F, 5.0F, 3.0F}) {
    w.fill(value);
    EXPECT_EQ(outer(x).item<float>({0}), 3 * value);
    EXPECT_EQ(branch(x).item<float>({0}), value);
    EXPECT_EQ(branch(0 - x).item<float>({0}), -2 * value);
    EXPECT_EQ(loop(x).item<float>({0}), 1 + 3 * value * value);
  }
}

TEST(Compile, Trap_U15_WhatAFunctionWritesOutsideIsWritten) {
  const auto engine = patient_engine();
  Tensor total = filled(engine, {2}, 0);
  int calls = 0;
  const auto f = compile([&](const Tensor& x) {
    ++calls;
    total = total + x;
    return total * 2;
  });
  const Tensor x = filled(engine, {2}, 1);
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(f(x).item<float>({0}), 2.0F * static_cast<float>(i));
  EXPECT_EQ(total.to_vector<float>(), (Floats{5, 5}));
  EXPECT_EQ(calls, 5);
}

TEST(Compile, Trap_U15_NothingKeepsWhatIsNotCapturedAnyMore) {
  const auto engine = patient_engine();
  std::vector<float> memory(4, 2.0F);
  bool is_released = false;
  Tensor w = from_memory(memory.data(), {4}, [&] { is_released = true; }, {.engine = engine});
  const bool shares = !is_released;  // a device with memory of its own copies at once
  const auto f = compile([&](const Tensor& a) { return a * w; });
  const Tensor x = filled(engine, {4}, 1);
  EXPECT_EQ(f(x).item<float>({3}), 2);
  w = filled(engine, {4}, 3);
  EXPECT_EQ(f(x).item<float>({3}), 3);
  EXPECT_TRUE(is_released) << shares;
}

TEST(Compile, Trap_U15_ACaptureOfAnotherEngineIsAnErrorAtItsUse) {
  const auto engine = patient_engine(), other = patient_engine();
  Tensor w = filled(engine, {2}, 2);
  const auto f = compile([&](const Tensor& a) { return a * w; });
  const Tensor x = filled(engine, {2}, 1);
  EXPECT_EQ(f(x).item<float>({0}), 2);
  w = filled(other, {2}, 3);
  EXPECT_NE(message_of([&] { (void)f(x); }).find("tensors of two engines cannot be combined"),
            std::string::npos);
  w = filled(engine, {2}, 4);
  EXPECT_EQ(f(x).item<float>({0}), 4);
}

TEST(Compile, RandomNumbersAndValuesInsideAreThoseOfTheCall) {
  const auto engine = patient_engine();
  const auto noisy = compile([&](const Tensor& x) { return x + rand({4}, {.engine = engine}); });
  const Tensor x = filled(engine, {4}, 1);
  EXPECT_NE(noisy(x).to_vector<float>(), noisy(x).to_vector<float>());
  const auto asks = compile([](const Tensor& a) { return sum(a).item<float>() > 0 ? a : a + 10; });
  EXPECT_EQ(asks(x).item<float>({0}), 1);
  EXPECT_EQ(asks(0 - x).item<float>({0}), 9);
}

// ---- sizes

TEST(Compile, Trap_U9_ManyBatchesHaveFewPlans) {
  for (const bool is_pure : {false, true}) {
    const auto engine = patient_engine();
    const Tensor w = filled(engine, {4, 3}, 1);
    const auto f = compile([=](const Tensor& x) { return relu(matmul(x, w)) * 2; }, {.is_pure = is_pure});
    for (std::int64_t batch = 1; batch <= 600; ++batch) {
      const Tensor y = f(filled(engine, {batch, 4}, 1));
      EXPECT_EQ(y.shape(), (Shape{batch, 3}));
      EXPECT_EQ(y.item<float>({batch - 1, 2}), 8);
    }
    EXPECT_LE(engine->statistics().plans_made, is_pure ? 9U : 5U) << is_pure;
    EXPECT_LE(engine->statistics().plans, is_pure ? 9U : 5U) << is_pure;
    EXPECT_NE(tier_of(*engine), Tier::streamed);
  }
}

TEST(Compile, Trap_U9_FunctionsThatLookAtSizesStayRight) {
  const auto engine = patient_engine();
  const auto rows = compile([](const Tensor& x) {
    Tensor y = x[0];
    for (std::int64_t i = 1; i < x.dim(0); ++i) y = y * 2 + x[i];
    return y;
  });
  const auto halves = compile([](const Tensor& x) {
    const std::int64_t n = x.dim(0);
    return n % 2 == 0 ? x.reshape({2, n / 2}) + 1.0 : x.reshape({1, n}) - 1.0;
  });
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 1; n <= 12; ++n) {
      EXPECT_EQ(rows(filled(engine, {n, 2}, 1)).item<float>({1}), static_cast<float>((1 << n) - 1)) << n;
      const Tensor half = halves(filled(engine, {n}, 1));
      EXPECT_EQ(half.shape(), n % 2 == 0 ? (Shape{2, n / 2}) : (Shape{1, n}));
      EXPECT_EQ(half.item<float>({0, 0}), n % 2 == 0 ? 2.0F : 0.0F) << n;
    }
}

// Pads to the next multiple of 8: the sizes of the plan are no linear ones of the argument's.
TEST(Compile, Trap_U9_SizesThatCannotBeJoinedDoNotMakeAPlanEach) {
  const auto engine = Engine::create({.plans = {.threshold = 1000, .wait = true, .joins_sizes = false}});
  const auto padded = compile(
      [](const Tensor& x) { return pad(x, 0, {.before = {0}, .after = {(8 - x.dim(0) % 8) % 8}}) * 2; });
  for (std::int64_t n = 1; n <= 100; ++n)
    EXPECT_EQ(padded(filled(engine, {n}, 1)).shape(), (Shape{(n + 7) / 8 * 8})) << n;
  EXPECT_LE(engine->statistics().plans_made, 8U);
}

// ---- arguments and results

TEST(Compile, TakesAndGivesTrees) {
  const auto engine = patient_engine();
  const auto step = compile([](const Training& before, const std::pair<Tensor, Tensor>& batch) {
    Training after = before;
    const auto loss_of = [&](const std::vector<Tensor>& w) {
      const Tensor off = batch.first * w[0] - batch.second;
      return mean(off * off);
    };
    const auto [loss, gradients] = value_and_grad(loss_of)({before.weights.at("w")});
    Tensor& velocity = after.momentum.velocity.at("w");
    velocity = velocity * 0.5 + gradients[0];
    after.weights.at("w") = before.weights.at("w") - velocity * before.rate;
    ++after.momentum.steps;
    after.name += "+";
    return std::tuple{loss, after};
  });
  Training state{.weights = {{"w", filled(engine, {}, 0)}},
                 .momentum = {.velocity = {{"w", filled(engine, {}, 0)}}}};
  const std::pair batch{filled(engine, {8}, 1), filled(engine, {8}, 3)};
  double w = 0, velocity = 0;
  for (int i = 0; i < 10; ++i) {
    state.rate = 0.1 / (i + 1);
    auto [loss, after] = step(state, batch);
    eval(std::tie(loss, after));
    EXPECT_NEAR(loss.item<double>(), (w - 3) * (w - 3), 1e-4);
    velocity = velocity * 0.5 + 2 * (w - 3);
    w -= velocity * state.rate;
    state = after;
    EXPECT_NEAR(state.weights.at("w").item<double>(), w, 1e-4);
  }
  EXPECT_EQ(state.momentum.steps, 10);
  EXPECT_EQ(state.name, "sgd++++++++++");
  EXPECT_LE(engine->statistics().plans_made, 2U);
  EXPECT_NE(tier_of(*engine), Tier::streamed);
}

TEST(Compile, TakesStructsByReferenceAndWritesThem) {
  const auto engine = patient_engine();
  const auto move =
      compile([](Pose& pose, float seconds) { pose.position = pose.position + pose.speed * seconds; });
  Pose pose{filled(engine, {3}, 0), filled(engine, {3}, 2)};
  for (int i = 1; i <= 4; ++i) {
    move(pose, 0.5F);
    eval(pose);
    EXPECT_NE(tier_of(*engine), Tier::streamed);
    EXPECT_EQ(pose.position.item<float>({2}), static_cast<float>(i));
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

enum class Mode { sum, mean };

TEST(Compile, TakesOptionsFlagsTextsAndEnumerators) {
  const auto engine = patient_engine();
  const auto f = compile([](const Tensor& x, const std::optional<Tensor>& mask, Mode mode, bool negate,
                            const std::string& activation) {
    Tensor y = mask ? where(*mask, x, 0) : x;
    if (activation == "double") y = y * 2;
    y = mode == Mode::sum ? sum(y) : mean(y);
    return negate ? -y : y;
  });
  const Tensor x = filled(engine, {4}, 3);
  const Tensor mask = from_vector<std::int32_t>({1, 1, 0, 0}, {4}, {.engine = engine}) > 0;
  EXPECT_EQ(f(x, std::nullopt, Mode::sum, false, "none").item<float>(), 12);
  EXPECT_EQ(f(x, std::optional(mask), Mode::sum, false, "none").item<float>(), 6);
  EXPECT_EQ(f(x, mask, Mode::mean, true, "double").item<float>(), -3);
}

TEST(Compile, NumbersComeAsTheFunctionTakesThem) {
  const auto engine = patient_engine();
  const Tensor x = filled(engine, {2}, 1);
  const auto as_numbers = compile([](const Tensor& a, double scale, int count) {
    Tensor y = a;
    for (int i = 0; i < count; ++i) y = y * scale;
    return y;
  });
  const auto as_tensors = compile([](const Tensor& a, const Tensor& scale) { return a * scale; });
  const auto flagged = compile(
      [](const Tensor& a, const Tensor& scale, bool twice) { return a * (twice ? scale * 2 : scale); });
  for (const float scale : {2.0F, 3.0F}) {
    EXPECT_EQ(as_numbers(x, scale, 2).item<float>({0}), scale * scale);
    EXPECT_EQ(as_tensors(x, scale).item<float>({0}), scale);
    EXPECT_EQ(flagged(x, scale, true).item<float>({0}), scale * 2);
  }
  EXPECT_EQ(engine->statistics().plans_made, 3U);
}

TEST(Compile, EmptyTensorsAreErrorsThatSayWhere) {
  const auto engine = patient_engine();
  const Tensor x = filled(engine, {2}, 1);
  const auto f = compile([](const Training& state, const Tensor& a) { return a + state.weights.at("w"); });
  Training state{.weights = {{"w", x}}, .momentum = {.velocity = {{"w", Tensor()}}}};
  EXPECT_NE(message_of([&] {
              (void)f(state, x);
            }).find("compile: argument 0: momentum.velocity[\"w\"] is an empty tensor"),
            std::string::npos);
  state.momentum.velocity["w"] = x;
  EXPECT_NE(message_of([&] { (void)f(state, Tensor()); }).find("compile: argument 1 is an empty tensor"),
            std::string::npos);
  const auto gives = compile([](const Tensor& a) { return std::vector<Tensor>{a, Tensor()}; });
  EXPECT_NE(message_of([&] { (void)gives(x); }).find("compile: the result: [1] is an empty tensor"),
            std::string::npos);
}

static_assert(TensorTree<Tensor> && TensorTree<std::vector<Tensor>> && TensorTree<NamedTensors> &&
              TensorTree<std::map<int, std::optional<std::pair<Tensor, double>>>> && TensorTree<Training> &&
              TensorTree<Pose> && TensorTree<std::array<Pose, 2>> && TensorTree<std::tuple<Tensor&, int>> &&
              TensorTree<std::shared_ptr<Training>> && TensorTree<std::string> && TensorTree<TopkResults> &&
              TensorTree<ValueAndGradients>);
static_assert(!TensorTree<Secret> && !TensorTree<std::vector<Secret>> &&
              !TensorTree<std::pair<Tensor, Secret>> && !TensorTree<Tensor*>);

TEST(Trees, AreWalkedInOrder) {
  const Tensor a = tensor({1}), b = tensor({2}), c = tensor({3});
  const std::tuple tree{std::vector<Tensor>{c}, NamedTensors{{"b", b}, {"a", a}}, 7, std::optional<Pose>()};
  Floats seen;
  for_each_tensor(tree, [&](const Tensor& t) { seen.push_back(t.item<float>()); });
  EXPECT_EQ(seen, (Floats{3, 1, 2}));
  const Pose pose{a + 1.0, b + 1.0};
  eval(pose);
  EXPECT_TRUE(pose.position.is_evaluated() && pose.speed.is_evaluated());
}

// ---- gradients

TEST(Compile, GradientsFlowThroughIt) {
  const auto engine = patient_engine();
  const Tensor x = from_vector<float>({1, 2}, {2}, {.engine = engine});
  for (const bool is_pure : {false, true}) {
    const auto cube = compile([](const Tensor& a) { return a * a * a; }, {.is_pure = is_pure});
    const auto slope = grad([&](const Tensor& a) { return sum(cube(a)); });
    EXPECT_EQ(slope(x).to_vector<float>(), (Floats{3, 12}));
    const auto compiled_slope = compile(slope);
    EXPECT_EQ(compiled_slope(x).to_vector<float>(), (Floats{3, 12}));
    const auto curvature = compile(grad([&](const Tensor& a) { return sum(compiled_slope(a)); }));
    EXPECT_EQ(curvature(x).to_vector<float>(), (Floats{6, 12}));
  }
}

TEST(Compile, TensorsThatRequireGradientsGetThem) {
  const auto engine = patient_engine();
  Tensor w = from_vector<float>({1, 2}, {2}, {.engine = engine});
  w.requires_grad();
  const auto loss = compile([&](const Tensor& x) { return sum(x * w * w); });
  loss(filled(engine, {2}, 3)).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{6, 12}));
}

// ---- functions that promise to be pure

TEST(Compile, APureFunctionIsTracedOncePerTypes) {
  const auto engine = patient_engine();
  int traced = 0;
  const auto f = compile([&](const Tensor& x) { return ++traced, exp(x) * 0.5; }, {.is_pure = true});
  for (int round = 0; round < 3; ++round)
    for (const std::int64_t size : {4, 5}) (void)f(filled(engine, {size}, 0)).item<float>({0});
  EXPECT_EQ(traced, 2);
}
