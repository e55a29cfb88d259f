// Code that is evaluated again runs as a plan, without being asked, and gives the same values.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <random>
#include <regex>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/runtime/reference/reference_device.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/custom.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"
#include "tests/support/repeats.h"

using namespace tessera;
using engine::Tier;

namespace {

/// An engine whose plans are made in the evaluation that makes them hot.
std::shared_ptr<Engine> waiting(engine::PlanOptions plans = {}) {
  plans.wait = true;
  return Engine::create({.plans = plans});
}

Tier last_tier(const Engine& engine) { return engine.report().components.at(0).tier; }

/// first, first + 1, …
Tensor numbers(const std::shared_ptr<Engine>& engine, const Shape& shape, double first = 0) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(first + static_cast<double>(i)));
  return from_vector(values, shape, {.engine = engine}).eval();
}

void expect_near(const Tensor& got, const std::function<double(std::int64_t)>& expected) {
  const auto values = got.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected(static_cast<std::int64_t>(i)), 1e-4);
}

}  // namespace

TEST(Plans, Trap_S8_NumbersBuffersAndSizesReuseOnePlan) {
  const auto engine = waiting();
  const auto step = [&](const Tensor& x, double a) {
    const Tensor y = x * a + 1;
    eval(y);
    return y;
  };
  const Tensor x = numbers(engine, {4, 3});
  for (int i = 0; i < 3; ++i) step(x, 0.5);
  EXPECT_EQ(last_tier(*engine), Tier::cold);
  EXPECT_EQ(engine->statistics().plans, 1U);
  step(x, 0.5);
  EXPECT_EQ(last_tier(*engine), Tier::none);
  expect_near(step(x, 0.7), [](auto i) { return i * 0.7 + 1; });
  EXPECT_EQ(last_tier(*engine), Tier::hot);
  const Tensor other = numbers(engine, {4, 3}, 5);
  expect_near(step(other, 0.7), [](auto i) { return (i + 5) * 0.7 + 1; });
  EXPECT_EQ(last_tier(*engine), Tier::warm);
  for (const std::int64_t batch : {2, 5, 8, 16, 3, 33, 64, 7}) {
    const Tensor more = numbers(engine, {batch, 3});
    expect_near(step(more, 0.25), [](auto i) { return i * 0.25 + 1; });
    EXPECT_EQ(engine->statistics().plans, 1U) << batch;
  }
  EXPECT_EQ(last_tier(*engine), Tier::warm);
  EXPECT_EQ(engine->statistics().plans_made, 2U);  // one for numbers, one for symbols
}

TEST(Plans, Trap_S17_EqualNumbersAreStillTwoSlots) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {4}, 1);
  for (const auto& [a, b] : {std::pair{0.5, 0.7}, std::pair{0.6, 0.6}, std::pair{0.5, 0.7}}) {
    expect_near(x * a + x * b, [&, a = a, b = b](auto i) { return (i + 1) * a + (i + 1) * b; });
    EXPECT_EQ(engine->statistics().plans, 1U);
  }
}

TEST(Plans, Trap_S9_WhatTheProgramHoldsIsPartOfIt) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {3});
  const auto recorded = [&] { return relu(x + 1); };
  for (int i = 0; i < 2; ++i) eval(recorded());
  EXPECT_EQ(engine->statistics().plans, 1U);
  const Tensor t = x + 1;
  const Tensor r = relu(t);
  eval(r);
  EXPECT_EQ(engine->statistics().plans, 2U);
  EXPECT_TRUE(t.is_evaluated());
  expect_near(t, [](auto i) { return i + 1; });
}

TEST(Plans, Trap_S10_AValueThatIsReadAndThenWrittenAgain) {
  const auto engine = waiting({.threshold = 1});
  for (int round = 0; round < 4; ++round) {
    Tensor a = numbers(engine, {3}, round);
    const Tensor b = a * 2;
    a.fill(7);
    const Tensor c = a + b;
    eval({b, c});
    expect_near(b, [&](auto i) { return 2.0 * (i + round); });
    expect_near(c, [&](auto i) { return 7 + 2.0 * (i + round); });
  }
}

TEST(Plans, Trap_S15_ShapesThatAlternateDoNotThrash) {
  const auto engine = waiting();
  for (int round = 0; round < 40; ++round) {
    const std::int64_t batch = round % 2 == 0 ? 4 : 9;
    expect_near(tanh(numbers(engine, {batch}, round) * 0.01),
                [&](auto i) { return std::tanh((i + round) * 0.01F); });
  }
  EXPECT_LE(engine->statistics().plans_made, 6U);
  EXPECT_GE(engine->statistics().runs(Tier::warm), 30U);
}

TEST(Plans, Trap_S16_ForcedCollisionsFindTheRightPlan) {
  const auto engine = waiting({.threshold = 1, .hash_mask = 0});
  const Tensor x = numbers(engine, {5}, 1);
  for (int round = 0; round < 3; ++round) {
    expect_near(x * 2 + 1, [](auto i) { return (i + 1) * 2 + 1; });
    expect_near(x + 2, [](auto i) { return i + 3; });
    expect_near(x - 2, [](auto i) { return i - 1; });
    expect_near(sum(x), [](auto) { return 15; });
  }
  EXPECT_GE(engine->statistics().runs(Tier::none), 6U);
}

TEST(Plans, Trap_S19_OneGraphIsHotTheOtherIsStreamed) {
  const auto engine = waiting();
  const Tensor x = numbers(engine, {4}, 1), y = numbers(engine, {2, 2});
  const auto graph_1 = [&] { return exp(x * 0.1); };
  for (int i = 0; i < 3; ++i) eval(graph_1());
  const Tensor a = graph_1(), b = sum(y, {.axes = {0}});
  eval({a, b});
  const auto report = engine->report();
  ASSERT_EQ(report.components.size(), 2U);
  EXPECT_EQ(report.components[0].tier, Tier::none);
  EXPECT_EQ(report.components[1].tier, Tier::streamed);
  expect_near(a, [](auto i) { return std::exp((i + 1) * 0.1); });
  expect_near(b, [](auto i) { return i + i + 2; });
}

TEST(Plans, Trap_S20_ATrainingLoopIsOneUnitPerStep) {
  const auto engine = Engine::create();
  Tensor w = numbers(engine, {2, 2});
  const Tensor x = numbers(engine, {4, 2}, 1);
  std::uint64_t used = 0;
  constexpr unsigned steps = fixture::repeats(10'000U);
  for (unsigned i = 0; i < steps; ++i) {
    const auto loss =
        value_and_grad([&](const std::vector<Tensor>& p) { return mean(square(matmul(x, p[0]))); });
    const auto [value, gradients] = loss({w});
    w = w - 0.001 * gradients[0];
    eval({w, value});
    if (i == 100) engine->wait_for_plans();
    if (i == 200) used = engine->memory().used;
  }
  EXPECT_LE(engine->memory().used, used);
  EXPECT_LE(engine->statistics().plans, 3U);
  EXPECT_GT(engine->statistics().runs(Tier::streamed) + engine->statistics().runs(Tier::warm) +
                engine->statistics().runs(Tier::none),
            steps * 8 / 10);
  EXPECT_GT(engine->statistics().runs(Tier::none) + engine->statistics().runs(Tier::warm), steps * 8 / 10);
}

TEST(Plans, Trap_S13_ManyStructuresAreBounded) {
  const auto engine = waiting({.threshold = 1, .max_entries = 8});
  const Tensor x = numbers(engine, {2}, 1);
  for (int length = 1; length < 60; ++length) {
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = y + 1;
    expect_near(y, [&](auto i) { return i + 1 + length; });
  }
  EXPECT_LE(engine->statistics().plans, 8U);
  EXPECT_GE(engine->statistics().evictions, 50U);
}

TEST(Plans, Trap_U5_WhatGetsHotWhileManyPlansWaitIsPlannedLater) {
  const auto engine = Engine::create({.plans = {.threshold = 1}});
  const Tensor x = numbers(engine, {2}, 1);
  constexpr int structures = 100;
  for (int again = 0; again < 4; ++again) {
    for (int length = 1; length <= structures; ++length) {
      Tensor y = x;
      for (int i = 0; i < length; ++i) y = y + 1;
      expect_near(y, [&](auto i) { return i + 1 + length; });
    }
    engine->wait_for_plans();
  }
  EXPECT_EQ(engine->statistics().plans, std::uint64_t{structures});
}

TEST(Plans, ValuesOfAttributesTellPlansApart) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {1, 1, 2, 2}), table = numbers(engine, {3, 3});
  const auto seen = [&](std::optional<double> scale, bool causal) {
    return attention(x, x, x, {}, {.causal = causal, .scale = scale}).to_vector<float>();
  };
  const auto first = seen({}, false), causal = seen({}, true), scaled = seen(0.01, false);
  EXPECT_NE(first, causal);
  EXPECT_NE(first, scaled);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(seen({}, false), first);
    EXPECT_EQ(seen({}, true), causal);
    EXPECT_EQ(seen(0.01, false), scaled);
    EXPECT_EQ(sum(table, {.axes = {0}}).to_vector<float>(), (std::vector<float>{9, 12, 15}));
    EXPECT_EQ(sum(table, {.axes = {1}}).to_vector<float>(), (std::vector<float>{3, 12, 21}));
  }
}

TEST(Plans, ViewsShareStorageInAPlanToo) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {3, 4});
  for (int i = 0; i < 3; ++i) {
    const Tensor t = x.transpose(), s = (x + 1).slice({{1, 3}});
    eval({t, s});
    EXPECT_EQ(t.storage(), x.storage());
    expect_near(s, [](auto k) { return k + 5; });
    expect_near(t, [](auto k) { return k % 3 * 4 + k / 3; });
  }
}

TEST(Plans, OutputsOfASteadyLoopLieWhereTheyLay) {
  const auto engine = waiting();
  const Tensor x = numbers(engine, {64});
  std::vector<const void*> places;
  for (int i = 0; i < 20; ++i) places.push_back((x * 2).eval().storage());
  for (int i = 5; i < 20; ++i) EXPECT_EQ(places[static_cast<std::size_t>(i)], places[4]);
}

// A result that somebody still holds is not written again.
TEST(Plans, HeldResultsKeepTheirValues) {
  const auto engine = waiting({.threshold = 1});
  std::vector<Tensor> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(numbers(engine, {8}, i) * 2);
    eval(kept.back());
  }
  for (int i = 0; i < 20; ++i)
    expect_near(kept[static_cast<std::size_t>(i)], [&](auto k) { return 2.0 * (k + i); });
}

TEST(Plans, CallsWithSeveralResults) {
  const auto engine = waiting({.threshold = 1});
  for (int round = 0; round < 4; ++round) {
    const Tensor x = numbers(engine, {6}, round);
    auto [values, indices] = topk(x, {.k = 2});
    Tensor first = values + 1;
    eval(first);
    expect_near(first, [&](auto i) { return 5 - i + round + 1; });
    expect_near(indices.cast(f32), [](auto i) { return 5 - i; });
  }
}

TEST(Plans, RegionsRunInPlans) {
  const auto engine = waiting({.threshold = 2});
  for (int round = 0; round < 5; ++round) {
    const Tensor x = numbers(engine, {3}, round);
    const Tensor y = cond(
                         sum(x) > 10.0, [&] { return x * 2; }, [&] { return x - 1; }) +
                     1;
    const double total = 3.0 * round + 3;
    expect_near(y, [&](auto i) { return total > 10 ? (i + round) * 2 + 1 : i + round; });
  }
  EXPECT_EQ(engine->statistics().plans, 1U);
}

TEST(Plans, MadeBesideTheProgram) {
  const auto engine = Engine::create();
  const Tensor x = numbers(engine, {4});
  for (int i = 0; i < 3; ++i) eval(x * 3 - 1);
  engine->wait_for_plans();
  EXPECT_EQ(engine->statistics().plans, 1U);
  for (const Tier tier : {Tier::cold, Tier::none}) {
    expect_near(x * 3 - 1, [](auto i) { return i * 3 - 1; });
    EXPECT_EQ(last_tier(*engine), tier) << engine->explain();
    if (tier == Tier::cold) {
      EXPECT_NE(engine->explain().find("first launch of its plan"), std::string::npos);
    }
  }
}

/// Another thread has the only instance: what this one has to make is said.
TEST(Plans, AnotherInstanceIsSaid) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {4});
  std::promise<void> inside, leave;
  std::atomic<bool> stays = false;
  const Custom waits =
      custom({.name = "waits_inside", .run = [&](std::span<const Elements> xs, std::span<const Elements> ys) {
                std::ranges::copy(xs[0].data<const float>(), ys[0].data<float>().begin());
                if (!stays.exchange(false)) return;
                inside.set_value();
                leave.get_future().wait();
              }});
  const auto run = [&] { (waits(x * 3) + 1).eval(); };
  for (int i = 0; i < 3; ++i) run();
  ASSERT_EQ(last_tier(*engine), Tier::none) << engine->explain();
  stays = true;
  std::thread other(run);
  inside.get_future().wait();
  run();
  EXPECT_EQ(last_tier(*engine), Tier::cold);
  EXPECT_NE(engine->explain().find("another instance of its plan"), std::string::npos) << engine->explain();
  leave.set_value();
  other.join();
  run();
  EXPECT_EQ(last_tier(*engine), Tier::none) << engine->explain();
}

TEST(Plans, OffMeansOff) {
  const auto engine = Engine::create({.plans = {.enabled = false}});
  const Tensor x = numbers(engine, {4});
  for (int i = 0; i < 10; ++i) eval(x * 3);
  EXPECT_EQ(engine->statistics().plans_made, 0U);
  EXPECT_NE(engine->explain().find("plans are off"), std::string::npos) << engine->explain();
}

TEST(Plans, SeveralThreadsRunOnePlan) {
  const auto engine = Engine::create({.plans = {.threshold = 1, .wait = true}});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const Tensor y = numbers(engine, {16}, t) * 2 + i;
        const auto values = y.to_vector<float>();
        for (int k = 0; k < 16; ++k)
          wrong += values[static_cast<std::size_t>(k)] != static_cast<float>((k + t) * 2 + i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// An error of the program is the same with a plan, and everything goes on after it.
TEST(Plans, ErrorsOfElementsNameTheLine) {
  const auto engine = waiting({.threshold = 1});
  const Tensor x = numbers(engine, {4});
  for (const std::int64_t index : {1, 2, 9, 3}) {
    const Tensor at = full({1}, static_cast<double>(index), {.dtype = i64, .engine = engine});
    const Tensor y = gather(x, at, {.axis = 0}) + 1;
    if (index < 4) {
      expect_near(y, [&](auto) { return index + 1; });
      if (index == 3) {
        EXPECT_LT(last_tier(*engine), Tier::cold) << engine->explain();
      }
      continue;
    }
    try {
      eval(y);
      FAIL() << "an index outside was accepted";
    } catch (const Exception& exception) {
      EXPECT_NE(std::string(exception.what()).find("plan_test.cpp"), std::string::npos) << exception.what();
    }
  }
}

namespace {

/// Runs plans as the reference does, but not well: late, or not at all.
class PoorDevice final : public runtime::Device {
 public:
  explicit PoorDevice(bool fails) : fails_(fails) {}
  [[nodiscard]] std::string_view name() const override { return "poor"; }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    return reference_.run(call, inputs, results);
  }
  [[nodiscard]] const pattern::Target& target() const override { return reference_.target(); }
  Result<std::unique_ptr<runtime::Executable>> load(
      plan::PlanRef plan, const std::shared_ptr<runtime::MemoryPool>& pool) override {
    if (fails_) return Error(ErrorCode::unsupported, "this device loads nothing");
    return std::unique_ptr<runtime::Executable>(
        std::make_unique<Late>(TESSERA_TRY(reference_.load(std::move(plan), pool))));
  }

 private:
  struct Late final : runtime::Executable {
    explicit Late(std::unique_ptr<runtime::Executable> executable) : inner(std::move(executable)) {}
    Result<void> prepare(std::span<const std::int64_t> sizes, std::span<const op::Layout> inputs) override {
      return inner->prepare(sizes, inputs);
    }
    [[nodiscard]] const plan::Binding& binding() const override { return inner->binding(); }
    Result<void> run(const runtime::Launch& launch) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return inner->run(launch);
    }
    std::unique_ptr<runtime::Executable> inner;
  };
  runtime::ReferenceDevice reference_;
  bool fails_;
};

}  // namespace

TEST(Plans, APlanThatIsSlowerThanStreamingIsDemotedAndSaysSo) {
  const auto engine =
      Engine::create({.plans = {.wait = true}, .device = std::make_shared<PoorDevice>(false)});
  const Tensor x = numbers(engine, {4});
  std::string said;
  for (int i = 0; i < 30; ++i) {
    expect_near(x + 1, [](auto k) { return k + 1; });
    if (engine->explain().find("demoted") != std::string::npos) said = engine->explain();
  }
  EXPECT_EQ(engine->statistics().demotions, 1U);
  EXPECT_NE(said, "");
  EXPECT_EQ(last_tier(*engine), Tier::streamed);
  EXPECT_NE(engine->explain().find("slower than op by op"), std::string::npos) << engine->explain();
}

TEST(Plans, APlanThatDoesNotLoadIsStreamedAndSaysSo) {
  const auto engine = Engine::create({.plans = {.wait = true}, .device = std::make_shared<PoorDevice>(true)});
  const Tensor x = numbers(engine, {4});
  for (int i = 0; i < 6; ++i) expect_near(x + 1, [](auto k) { return k + 1; });
  EXPECT_NE(engine->explain().find("this device loads nothing"), std::string::npos) << engine->explain();
}

// ---- what changed, in the caller's terms

namespace {

/// Makes `before` a plan, then evaluates `after` once; the report's second line.
template <class Before, class After>
std::string change(const Before& before, const After& after) {
  const auto engine = waiting();
  const Tensor x = numbers(engine, {4, 3}), y = numbers(engine, {4, 3}, 1);
  for (int i = 0; i < 4; ++i) eval(before(x, y));
  eval(after(x, y));
  const std::string text = engine->explain();
  const std::size_t at = text.find("nearest plan: ");
  return at == std::string::npos ? text : text.substr(at + 14, text.find('\n', at) - at - 14);
}

std::string line(int offset) { return cat("plan_test.cpp:", offset); }

}  // namespace

/// The same with `HERE` for lines of this file.
template <class Before, class After>
std::string masked_change(const Before& before, const After& after) {
  return std::regex_replace(change(before, after), std::regex("plan_test\\.cpp:[0-9]+"), "HERE");
}

TEST(PlanDifferences, HaveBothLines) {
  const int at = __LINE__ + 1;
  const auto before = [](const Tensor& x, const Tensor&) { return relu(x); };
  const auto after = [](const Tensor& x, const Tensor&) { return tanh(x); };
  EXPECT_EQ(change(before, after), cat(line(at + 1), ": tanh, where the plan has relu (", line(at), ")"));
}

TEST(PlanDifferences, InTheCallersTerms) {
  const auto base = [](const Tensor& x, const Tensor& y) { return sum(relu(x + y), {.axes = {0}}); };
  const auto differs = [&](const auto& after) { return masked_change(base, after); };
  const auto over_rows = [](const Tensor& x) { return sum(relu(x), {.axes = {0}}); };
  EXPECT_EQ(differs([](auto& x, auto& y) { return sum(tanh(x + y), {.axes = {0}}); }),
            "HERE: tanh, where the plan has relu (HERE)");
  EXPECT_EQ(differs([](auto& x, auto& y) { return sum(relu(x + y), {.axes = {1}}); }),
            "HERE: sum: axes is [1], in the plan [0] (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto&) { return over_rows(x + x); }),
            "HERE: add: operand 1 is input 0, in the plan it is input 1 (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto&) { return over_rows(x + 1.0); }),
            "HERE: add: operand 1 is a number, in the plan it is input 1 (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto& y) { return over_rows(x.cast(f64).eval() + y.cast(f64).eval()); }),
            "HERE: add: operand 0 (input 0) is f64[4, 3], in the plan f32[4, 3] (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto& y) { return over_rows((x + y) * 2.0); }),
            "HERE: mul, where the plan has relu (HERE)");
  EXPECT_EQ(differs([](auto& x, auto& y) { return relu(x + y); }),
            "HERE: relu: the program holds its result, in the plan it is dropped (HERE)");
  EXPECT_EQ(differs([](auto& x, auto& y) { return exp(sum(relu(x + y), {.axes = {0}})); }),
            "HERE: sum: nobody holds its result, in the plan it is kept (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto& y) { return over_rows(x.transpose().eval() + y.transpose().eval()); }),
            "HERE: add: operand 0 (input 0) is a view with strides, in the plan it is not (HERE)");
  EXPECT_EQ(differs([&](auto& x, auto& y) { return over_rows(y[0].eval() + x[0].eval()); }),
            "HERE: add: operand 0 (input 0) is f32[3], in the plan f32[4, 3] (HERE)");
}

TEST(PlanDifferences, ANewSizeIsNamed) {
  const auto engine = waiting();
  const auto step = [&](std::int64_t n) { eval(relu(numbers(engine, {n, 2}) + 1)); };
  for (int i = 0; i < 4; ++i) step(4);
  const int at = __LINE__ - 2;
  step(6);
  EXPECT_EQ(last_tier(*engine), Tier::cold);
  EXPECT_NE(
      engine->explain().find(cat(line(at), ": add: dimension 0 of operand 0 (input 0) is 6, in the plan 4")),
      std::string::npos)
      << engine->explain();
  step(9);
  EXPECT_EQ(last_tier(*engine), Tier::warm);
  EXPECT_NE(engine->explain().find("sizes d0=9"), std::string::npos) << engine->explain();
}

TEST(PlanDifferences, TheLogHasOneLinePerEvaluation) {
  std::vector<std::string> lines;
  ::setenv("TESSERA_LOG", "plan", 1);
  const auto engine =
      Engine::create({.log = [&](engine::LogLevel, std::string_view text) { lines.emplace_back(text); },
                      .plans = {.wait = true}});
  ::unsetenv("TESSERA_LOG");
  const Tensor x = ones({3}, {.engine = engine});
  eval(x);
  const std::size_t before = lines.size();
  for (int i = 0; i < 4; ++i) eval(x + 1);
  ASSERT_EQ(lines.size(), before + 4);
  EXPECT_NE(lines[before].find("streamed 1 op"), std::string::npos) << lines[before];
  EXPECT_NE(lines[before + 3].find("plan none 1 op"), std::string::npos) << lines[before + 3];
}

// ---- asked for

TEST(Compile, APlanAtOnceWithItsLiteralsInside) {
  const auto engine = waiting();
  int traced = 0;
  const auto f = compile(
      [&](const Tensor& x, const Tensor& rate) {
        ++traced;
        return exp(x * 0.5) - rate * x;
      },
      {.is_pure = true});
  const Tensor x = numbers(engine, {4});
  for (const double rate : {0.1, 0.2, 0.3})
    expect_near(f(x, full({}, rate, {.engine = engine})),
                [&](auto i) { return std::exp(i * 0.5) - rate * i; });
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(last_tier(*engine), Tier::hot);
  expect_near(f(numbers(engine, {2, 2}), full({}, 0.5, {.engine = engine})),
              [](auto i) { return std::exp(i * 0.5) - 0.5 * i; });
  EXPECT_EQ(traced, 2);
}

TEST(Compile, OnTheDefaultEngineWithNumbersAndSeveralResults) {
  const auto f = compile([](const Tensor& x, const Tensor& scale) {
    return std::vector<Tensor>{x * scale, sum(x)};
  });
  for (const float scale : {2.0F, 3.0F}) {
    const auto results = f(ones({3}), scale);
    expect_near(results[0], [&](auto) { return scale; });
    expect_near(results[1], [](auto) { return 3; });
  }
}

TEST(Compile, NumbersTakeTheDtypeOfTheTensor) {
  const auto sum_of = compile([](const Tensor& a, const Tensor& b) { return a + b; });
  EXPECT_EQ(sum_of(ones({1}, {.dtype = f64}), 0.1).item<double>(), 1.1);
  EXPECT_EQ(sum_of(zeros({1}, {.dtype = i64}), std::int64_t{9007199254740993}).item<std::int64_t>(),
            9007199254740993);
  EXPECT_EQ(sum_of(ones({1}, {.dtype = u8}), 1).dtype(), u8);
  EXPECT_EQ(sum_of(ones({1}, {.dtype = f16}), 1.5).dtype(), f16);
  const auto engine = waiting();
  EXPECT_EQ(sum_of(ones({1}, {.engine = engine}), 2.0).item<float>(), 3);
}

namespace {
struct OneOrTwo {
  Tensor operator()(const Tensor& x) const { return x; }
  Tensor operator()(const Tensor& x, const Tensor& y) const { return x + y * 10; }
};
}  // namespace

TEST(Compile, ACallableMayTakeSeveralNumbersOfArguments) {
  const auto f = compile(OneOrTwo{});
  const Tensor x = ones({1});
  EXPECT_EQ(f(x).item<float>(), 1);
  EXPECT_EQ(f(x, x).item<float>(), 11);
  EXPECT_EQ(f(x).item<float>(), 1);
}

TEST(Compile, SeveralThreadsMayCallItFirst) {
  for (int round = 0; round < 20; ++round) {
    const auto f = compile([](const Tensor& x, const Tensor& y) { return x * 2 + y; });
    const Tensor x = full({3}, 3).eval();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { wrong += f(x, x).item<float>({2}) != 9; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Compile, WhatCannotBeTracedIsAnError) {
  const auto again = std::make_shared<std::function<Tensor(Tensor)>>();
  const auto g = compile([again](const Tensor& a) { return (*again)(a); }, {.is_pure = true});
  *again = [g](const Tensor& a) { return g(a); };
  EXPECT_THROW((void)g(ones({1})), Exception);
  *again = nullptr;
  const auto random = compile([](const Tensor& a) { return a + rand({1}); }, {.is_pure = true});
  EXPECT_THROW((void)random(ones({1})), Exception);
  const auto asks =
      compile([](const Tensor& a) { return exp(a).item<float>() > 0 ? a : a + 1; }, {.is_pure = true});
  try {
    (void)asks(ones({1}));
    FAIL() << "a value that is not there";
  } catch (const Exception& e) {
    EXPECT_NE(std::string(e.what()).find("the value of 'exp' was asked for while"), std::string::npos)
        << e.what();
  }
}

TEST(Plans, WhatPlansKeepIsGivenBackWhenMemoryIsShort) {
  const auto engine = waiting();
  engine->set_memory_limit(2000);
  Tensor x = ones({64}, {.engine = engine});
  for (int i = 0; i < 6; ++i) eval(exp(x * 0.5) + i);
  x = Tensor();
  EXPECT_NO_THROW(eval(full({400}, 1, {.engine = engine})));
}

TEST(Plans, ARegionInALoopKeepsItsPlan) {
  const auto engine = waiting();
  const Tensor x = numbers(engine, {2}, 1);
  for (int i = 0; i < fixture::repeats(5000); ++i)
    eval(cond(
        sum(x) > 0.0, [&] { return x * 2; }, [&] { return x; }));
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

TEST(Compile, ConstantsKeepEveryBit) {
  const auto x = ones({1});
  const auto value = [&](double a, double b) {
    return compile([=](const Tensor& t) { return t * a + b; })(x).item<float>();
  };
  // Trap_S21: x*1+11, then x*11+1, then constants that a decimal point would cost bits.
  EXPECT_EQ(value(1, 11), 12.0F);
  EXPECT_EQ(value(11, 1), 12.0F);
  EXPECT_EQ(compile([](const Tensor& t) { return t * 11.0 + 1.0; })(x * 2).item<float>(), 23.0F);
  EXPECT_EQ(compile([](const Tensor& t) { return t * 1.0 + 11.0; })(x * 2).item<float>(), 13.0F);
  EXPECT_EQ(value(16777215, 0), 16777215.0F);
  EXPECT_EQ(value(3.14159274F, 0), 3.14159274F);
}

TEST(Compile, WarmUpMakesThePlanBeforeItIsNeeded) {
  const auto engine = waiting({.threshold = 1000});
  const auto f = [&](std::int64_t n) { return softmax(numbers(engine, {n, 4}) * 0.1, {.axis = -1}); };
  warm_up(f, {4, 8});
  EXPECT_EQ(engine->statistics().plans_made, 2U + 0U);
  const std::uint64_t made = engine->statistics().plans_made;
  eval(f(16));
  EXPECT_EQ(engine->statistics().plans_made, made);
  EXPECT_EQ(last_tier(*engine), Tier::warm);
}

// ---- with and without plans

namespace {

/// A random program over a few tensors, the same for the same seed.
std::vector<Tensor> random_program(std::mt19937& random, const std::shared_ptr<Engine>& engine,
                                   double number) {
  std::vector<Tensor> values{numbers(engine, {3, 4}, 1), numbers(engine, {4}, 2), numbers(engine, {3, 1}, 3)};
  for (int i = 0; i < 12; ++i) {
    const Tensor a = values[random() % values.size()], b = values[random() % values.size()];
    switch (random() % 9) {
      case 0:
        values.push_back(a + b);
        break;
      case 1:
        values.push_back(a * number);
        break;
      case 2:
        values.push_back(tanh(a * 0.1));
        break;
      case 3:
        values.push_back(a - sum(a));
        break;
      case 4:
        values.push_back(a.transpose());
        break;
      case 5:
        values.push_back(maximum(a, 2.0));
        break;
      case 6:
        values.push_back(mean(a, {.axes = {0}, .keepdims = true}));
        break;
      case 7:
        values.push_back(a.reshape({a.size()}));
        break;
      default:
        values.push_back(a / 3.0 + 1);
        break;
    }
    if (values.back().size() > 1000) values.pop_back();
  }
  return {values.back(), values[values.size() / 2]};
}

}  // namespace

/// Up to the rounding of fused kernels.
static void expect_close(const Tensor& a, const Tensor& b, const std::string& where) {
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  ASSERT_EQ(x.size(), y.size()) << where;
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5 * (1 + std::abs(y[i]))) << where;
}

TEST(Plans, RandomProgramsGiveTheSameWithAndWithoutPlans) {
  for (std::uint32_t seed = 0; seed < fixture::repeats(200U); ++seed) {
    const auto with = waiting({.threshold = 2}), without = Engine::create({.plans = {.enabled = false}});
    for (int round = 0; round < 4; ++round) {
      std::mt19937 a(seed), b(seed);
      std::vector<Tensor> x, y;
      try {
        x = random_program(a, with, 0.5 + round);
      } catch (const Exception&) {
        break;  // shapes that do not broadcast
      }
      y = random_program(b, without, 0.5 + round);
      eval(x);
      eval(y);
      for (std::size_t i = 0; i < x.size(); ++i)
        expect_close(x[i], y[i], cat("seed ", seed, ", round ", round));
    }
  }
}

// In a compiled function the size is an upper bound with a count beside it. Code that asks for the count is
// cut there by itself: what comes before and what comes behind are two plans, for all counts.
TEST(Plans, SizesThatDependOnDataAreBoundedOrLearned) {
  const auto engine = waiting({.threshold = 2});
  const auto found = compile([](const Tensor& x) {
    const auto places = nonzero(x);
    return std::vector<Tensor>{places.indices, places.count};
  });
  const auto kept = [](const Tensor& x) {
    const auto places = nonzero(x * 1.0);
    const auto count = places.count.item<std::int64_t>();
    const Tensor rows = slice(places.indices, {.starts = {0}, .stops = {count}, .axes = {0}});
    return gather(x, reshape(rows, {.shape = {count}})) + 1.0;
  };
  std::size_t plans = 0;
  for (const int count : {3, 5, 1, 4, 2, 6, 7, 0}) {
    std::vector<float> values(8, 0.0F);
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
    const Tensor x = from_vector(values, {8}, {.engine = engine}).eval();
    const auto places = found(x);
    EXPECT_EQ(places[0].shape(), (Shape{8, 1}));
    EXPECT_EQ(places[1].item<std::int64_t>(), count);
    const Tensor y = kept(x).eval();
    EXPECT_EQ(y.shape(), (Shape{count}));
    for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(y.item<float>({i}), static_cast<float>(i + 2));
    if (count == 2) plans = engine->statistics().plans;
  }
  EXPECT_LE(engine->statistics().plans, plans + 1) << "only a size of 0 may need another plan";
}
