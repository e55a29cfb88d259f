// Slices and updates that begin elsewhere each time run as one plan: where they begin is patched.
#include <gtest/gtest.h>

#include <functional>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using engine::Tier;

namespace {

constexpr std::int64_t rows_of_x = 64, width_of_x = 6;

std::shared_ptr<Engine> waiting() { return Engine::create({.plans = {.wait = true}}); }
std::shared_ptr<Engine> streaming() { return Engine::create({.plans = {.enabled = false}}); }

Tensor numbered(const std::shared_ptr<Engine>& engine, const Shape& shape, double scale = 1) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(static_cast<double>(i * 31 % 97 - 48) * scale));
  return from_vector(values, shape, {.engine = engine}).eval();
}

/// What programs read: x is [64, 6], w is [6, 5].
struct Data {
  explicit Data(const std::shared_ptr<Engine>& engine)
      : x(numbered(engine, {rows_of_x, width_of_x})), w(numbered(engine, {width_of_x, 5}, 0.125)) {}
  Tensor x, w;
};

using Positions = std::vector<std::int64_t>;
using Program = std::function<std::vector<Tensor>(const Data&, std::int64_t)>;

/// Distinct positions up to `end`, in no order.
Positions positions(std::int64_t begin, std::int64_t end) {
  Positions out;
  for (std::int64_t i = 0; i < end - begin; ++i) out.push_back(begin + i * 37 % (end - begin));
  return out;
}

/// Judges evaluations from which on a plan is only patched: on the CPU addresses, numbers and sizes. On a GPU
/// kernels for another alignment or size take the place of those that were there, and calls of libraries are
/// captured again; its graph is made anew where that takes more kernels or fewer, once for each alignment.
class OnlyPatched {
 public:
  void expect(const std::shared_ptr<Engine>& engine, std::int64_t evaluation) {
    const bool is_gpu = engine::is_gpu_name(engine->device().name());
    for (const auto& component : engine->report().components) {
      if (is_gpu && component.tier == Tier::cold && ++made_anew_ <= alignments) continue;
      EXPECT_LE(component.tier, is_gpu ? Tier::code : Tier::warm) << evaluation << ": " << engine->explain();
    }
  }

 private:
  static constexpr int alignments = 4;  // of two operands, each at 0 or 8 of 16 bytes
  int made_anew_ = 0;
};

/// The program gives the values that it gives op by op, from the fourth evaluation on as a plan that is only
/// patched. Returns how many plans were made.
std::uint64_t plans_made(const Program& program, const Positions& at) {
  const auto planned = waiting(), plain = streaming();
  const Data data(planned), same(plain);
  OnlyPatched patched;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::vector<Tensor> got = program(data, at[i]), expected = program(same, at[i]);
    eval(got);
    eval(expected);
    for (std::size_t k = 0; k < got.size(); ++k) {
      EXPECT_EQ(got[k].shape(), expected[k].shape()) << at[i];
      const auto a = got[k].to_vector<double>(), b = expected[k].to_vector<double>();
      for (std::size_t e = 0; e < a.size(); ++e)
        EXPECT_NEAR(a[e], b[e], 1e-4 * (1 + std::abs(b[e]))) << "position " << at[i] << ", element " << e;
    }
    if (i >= 3) patched.expect(planned, at[i]);
  }
  return planned->statistics().plans_made;
}

}  // namespace

// ---- slices of what is stored

TEST(MovingSlices, Trap_U2_AWindowOfAStoredTensor) {
  const Program window = [](const Data& d, std::int64_t p) {
    return std::vector{d.x.slice({{.start = p, .stop = p + 8}}) * 2 + 1};
  };
  EXPECT_EQ(plans_made(window, positions(0, 56)), 1U);
}

TEST(MovingSlices, Trap_U2_TheSliceItself) {
  const Program window = [](const Data& d, std::int64_t p) {
    return std::vector{d.x.slice({{.start = p, .stop = p + 8}})};
  };
  EXPECT_EQ(plans_made(window, positions(0, 56)), 1U);
}

TEST(MovingSlices, Trap_U2_UpToAPosition) {
  const Program begin = [](const Data& d, std::int64_t p) {
    return std::vector{sum(d.x.slice({{.stop = p}}), {.axes = {0}})};
  };
  EXPECT_EQ(plans_made(begin, positions(2, 64)), 1U);
}

/// Sizes of 0 and 1 are no symbols: the plan is made one evaluation later, for all that follow.
TEST(MovingSlices, Trap_U2_UpToAPositionThatGrowsFromNothing) {
  const auto engine = waiting();
  const Data d(engine);
  OnlyPatched patched;
  for (std::int64_t p = 0; p < 64; ++p) {
    EXPECT_EQ(sum(d.x.slice({{.stop = p}}) * 0 + 1).item<double>(), static_cast<double>(p * width_of_x));
    if (p > 3) patched.expect(engine, p);
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

TEST(MovingSlices, Trap_U2_FromAPositionOn) {
  const Program rest = [](const Data& d, std::int64_t p) {
    return std::vector{sum(d.x.slice({{.start = p}}), {.axes = {0}})};
  };
  EXPECT_EQ(plans_made(rest, positions(0, 62)), 1U);
}

TEST(MovingSlices, Trap_U2_AnIndex) {
  const Program row = [](const Data& d, std::int64_t p) { return std::vector{d.x[p] * d.x[0]}; };
  EXPECT_EQ(plans_made(row, positions(1, 64)), 1U);
}

TEST(MovingSlices, Trap_U2_FromTheEnd) {
  const Program last = [](const Data& d, std::int64_t p) {
    return std::vector{relu(d.x.slice({{.start = -p - 4, .stop = -p}}))};
  };
  EXPECT_EQ(plans_made(last, positions(1, 60)), 1U);
}

TEST(MovingSlices, Trap_U2_WithSteps) {
  const Program forth = [](const Data& d, std::int64_t p) {
    return std::vector{relu(d.x.slice({{.start = p, .stop = p + 9, .step = 3}}))};
  };
  EXPECT_EQ(plans_made(forth, positions(0, 55)), 1U);
  const Program back = [](const Data& d, std::int64_t p) {
    return std::vector{relu(d.x.slice({{.start = p + 6, .stop = p, .step = -2}}))};
  };
  EXPECT_EQ(plans_made(back, positions(0, 57)), 1U);
}

TEST(MovingSlices, Trap_U2_SeveralAxesAtOnce) {
  const Program tile = [](const Data& d, std::int64_t p) {
    return std::vector{d.x.slice({{.start = p, .stop = p + 4}, {.start = p % 3, .stop = p % 3 + 3}}) + 1};
  };
  EXPECT_EQ(plans_made(tile, positions(0, 60)), 1U);
}

TEST(MovingSlices, Trap_U2_TwoTogetherAndTwoApart) {
  const Program together = [](const Data& d, std::int64_t p) {
    return std::vector{d.x.slice({{.start = p, .stop = p + 4}}) -
                       d.x.slice({{.start = p + 1, .stop = p + 5}})};
  };
  EXPECT_EQ(plans_made(together, positions(0, 59)), 1U);
  const Program apart = [](const Data& d, std::int64_t p) {
    const std::int64_t q = p * 11 % 60;
    return std::vector{d.x.slice({{.start = p, .stop = p + 4}}) * d.x.slice({{.start = q, .stop = q + 4}})};
  };
  EXPECT_EQ(plans_made(apart, positions(0, 60)), 1U);
}

TEST(MovingSlices, Trap_U2_ASliceOfASlice) {
  const Program inner = [](const Data& d, std::int64_t p) {
    const Tensor outer = d.x.slice({{.start = p, .stop = p + 8}});
    return std::vector{
        exp(outer.slice({{.start = p % 4, .stop = p % 4 + 4}, {.start = 1, .stop = 3}}) * 0.01)};
  };
  EXPECT_EQ(plans_made(inner, positions(0, 56)), 1U);
}

TEST(MovingSlices, Trap_U2_AnOperandOfAProduct) {
  const Program product = [](const Data& d, std::int64_t p) {
    return std::vector{matmul(d.x.slice({{.start = p, .stop = p + 8}}), d.w)};
  };
  EXPECT_EQ(plans_made(product, positions(0, 56)), 1U);
  const Program columns_of = [](const Data& d, std::int64_t p) {
    const std::int64_t q = p % 5;
    return std::vector{
        matmul(d.x.slice({{}, {.start = q, .stop = q + 2}}), d.w.slice({{.start = q, .stop = q + 2}}))};
  };
  EXPECT_EQ(plans_made(columns_of, positions(0, 20)), 1U);
}

TEST(MovingSlices, Trap_U2_ASliceThatIsHeld) {
  const Program held = [](const Data& d, std::int64_t p) {
    Tensor part = d.x.slice({{.start = p, .stop = p + 8}});
    return std::vector{part, sum(part * part)};
  };
  EXPECT_EQ(plans_made(held, positions(0, 56)), 1U);
}

// ---- slices of what is computed

TEST(MovingSlices, Trap_U2_OfAResult) {
  const Program part = [](const Data& d, std::int64_t p) {
    return std::vector{relu(matmul(d.x, d.w).slice({{.start = p, .stop = p + 8}}))};
  };
  EXPECT_EQ(plans_made(part, positions(0, 56)), 1U);
  const Program begin = [](const Data& d, std::int64_t p) {
    return std::vector{sum(matmul(d.x, d.w).slice({{.stop = p}}), {.axes = {0}})};
  };
  EXPECT_EQ(plans_made(begin, positions(2, 64)), 1U);
  const Program rest = [](const Data& d, std::int64_t p) {
    return std::vector{sum(matmul(d.x, d.w).slice({{.start = p}}), {.axes = {0}})};
  };
  EXPECT_EQ(plans_made(rest, positions(0, 62)), 1U);
  const Program back = [](const Data& d, std::int64_t p) {
    return std::vector{(d.x + 1).slice({{.start = -p, .stop = -p - 4, .step = -2}}) * 2};
  };
  EXPECT_EQ(plans_made(back, positions(1, 60)), 1U);
}

TEST(MovingSlices, Trap_U2_TheGradientOfASlice) {
  const Program gradients = [](const Data& d, std::int64_t p) {
    Tensor x = d.x * 1;
    x.eval();
    x.requires_grad();
    const Tensor part = x.slice({{.start = p, .stop = p + 8}});
    sum(part * part).backward();
    return std::vector{x.grad()};
  };
  EXPECT_LE(plans_made(gradients, positions(0, 56)), 3U);
}

// ---- updates

TEST(MovingSlices, Trap_U2_AnUpdateThenASliceToItsEnd) {
  const Program step = [](const Data& d, std::int64_t p) {
    Tensor cache = d.x;
    cache.update_slice({p}, numbered(d.x.engine(), {1, width_of_x}));
    return std::vector{sum(cache.slice({{.stop = p + 1}}), {.axes = {0}}), cache};
  };
  EXPECT_LE(plans_made(step, positions(1, 63)), 1U);
}

TEST(MovingSlices, Trap_U2_ACacheThatGrowsFromEvaluationToEvaluation) {
  const auto planned = waiting(), plain = streaming();
  OnlyPatched patched;
  Tensor cache = zeros({rows_of_x, width_of_x}, {.engine = planned}).eval();
  Tensor same = zeros({rows_of_x, width_of_x}, {.engine = plain}).eval();
  const Tensor row = numbered(planned, {1, width_of_x}), other = numbered(plain, {1, width_of_x});
  const auto step = [](Tensor& list, const Tensor& now, std::int64_t p) {
    list.update_slice({p}, now * static_cast<double>(p + 1));
    return sum(list.slice({{.stop = p + 1}}), {.axes = {0}}).to_vector<double>();
  };
  for (std::int64_t p = 0; p < rows_of_x; ++p) {
    EXPECT_EQ(step(cache, row, p), step(same, other, p)) << p;
    if (p >= 3) patched.expect(planned, p);
  }
  EXPECT_EQ(cache.to_vector<double>(), same.to_vector<double>());
  EXPECT_EQ(planned->statistics().plans_made, 1U);
}

TEST(MovingSlices, Trap_U2_ACacheThatAttentionReads) {
  const Program step = [](const Data& d, std::int64_t p) {
    Tensor keys = d.x, values = d.x * 0.5;
    const Tensor now = numbered(d.x.engine(), {1, width_of_x}, 0.01);
    keys.update_slice({p, 0}, now);
    values.update_slice({p}, now + 1);
    const Tensor scores = matmul(now, keys.slice({{.stop = p + 1}}).transpose()) * 0.1;
    return std::vector{matmul(softmax(scores), values.slice({{.stop = p + 1}}))};
  };
  EXPECT_LE(plans_made(step, positions(1, 63)), 1U);
}

TEST(MovingSlices, Trap_U2_UpdatesInSeveralPlaces) {
  const Program step = [](const Data& d, std::int64_t p) {
    Tensor x = d.x;
    x.update_slice({p, 1}, numbered(d.x.engine(), {2, 3}), {2, 2});
    x.update_slice({-p - 1}, numbered(d.x.engine(), {1, width_of_x}));
    return std::vector{x};
  };
  EXPECT_EQ(plans_made(step, positions(0, 60)), 1U);
}

TEST(MovingSlices, Trap_L16_WhatWasRecordedBeforeAnUpdateKeepsItsElements) {
  const Program before = [](const Data& d, std::int64_t p) {
    Tensor x = d.x;
    const Tensor y = x.slice({{.start = p, .stop = p + 3}});
    x.update_slice({p}, numbered(d.x.engine(), {3, width_of_x}, 7));
    return std::vector{y, x.slice({{.start = p, .stop = p + 3}})};
  };
  EXPECT_EQ(plans_made(before, positions(0, 61)), 2U);  // two components: nothing that is computed joins them
}

TEST(MovingSlices, PositionsThatNeverChangeStayNumbers) {
  const Program fixed = [](const Data& d, std::int64_t p) {
    return std::vector{d.x.slice({{.start = 3, .stop = 9}}) * static_cast<double>(p)};
  };
  EXPECT_EQ(plans_made(fixed, positions(0, 20)), 1U);
}

// ---- epochs

namespace {

/// What a step of an epoch takes of the library: launches, steps that compute, and plans.
struct Epoch {
  std::uint64_t kernels = 0, plans_made = 0, streamed = 0;
};

Epoch epoch_of(const std::function<Tensor(const Data&, std::int64_t)>& batch) {
  const auto engine = waiting();
  const Data data(engine);
  for (std::int64_t p = 0; p + 4 <= rows_of_x; p += 4) eval(sum(tanh(matmul(batch(data, p), data.w))));
  const auto figures = engine->statistics();
  return {figures.kernels, figures.plans_made, figures.runs(Tier::streamed)};
}

}  // namespace

TEST(MovingSlices, Trap_U3_AnEpochBySlicesTakesNoMoreThanOneByGather) {
  const Epoch sliced =
      epoch_of([](const Data& d, std::int64_t p) { return d.x.slice({{.start = p, .stop = p + 4}}); });
  const Epoch gathered = epoch_of([](const Data& d, std::int64_t p) {
    return gather(
        d.x, from_vector(std::vector<std::int64_t>{p, p + 1, p + 2, p + 3}, {4}, {.engine = d.x.engine()}));
  });
  EXPECT_LE(sliced.kernels, gathered.kernels);
  EXPECT_EQ(sliced.streamed, gathered.streamed);
  EXPECT_EQ(sliced.plans_made, 1U);
}

// ---- what stands in the way

namespace {

/// The line of explain() about the nearest plan.
std::string obstacle(const Engine& engine) {
  const std::string text = engine.explain();
  const std::size_t at = text.find("nearest plan: ");
  return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST(MovingSlices, Trap_U2_ExplainNamesWhatStandsInTheWayAndNotWhatMoves) {
  const auto engine = waiting();
  const Data d(engine);
  const auto part = [&](std::int64_t p, std::int64_t size) {
    return d.x.slice({{.start = p, .stop = p + size}});
  };
  for (std::int64_t p = 0; p < 5; ++p) eval(sum(relu(part(p, 8)), {.axes = {0}}));
  EXPECT_EQ(engine->statistics().plans_made, 1U);
  eval(sum(relu(part(30, 8)), {.axes = {1}}));
  EXPECT_NE(obstacle(*engine).find("sum: axes is [1], in the plan [0]"), std::string::npos)
      << obstacle(*engine);
  const auto fixed = waiting();
  const Data f(fixed);
  for (int i = 0; i < 3; ++i) eval(relu(f.x.slice({{.start = 2, .stop = 4}})));
  eval(relu(f.x.slice({{.start = 2, .stop = 3}})));  // a size of 1 is no symbol
  EXPECT_NE(fixed->explain().find("slice: dimension 0 of the result is 1, in the plan 2"), std::string::npos)
      << fixed->explain();
}

TEST(MovingSlices, Trap_U3_SizesThatCannotChangeTogetherMakeNoPlansThatAreNeverRun) {
  const auto engine = waiting();
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t p = 2 + i, q = 3 + i * 7 % 11;
    const Tensor x = numbered(engine, {p * q});
    EXPECT_EQ(reshape(relu(x), {.shape = {p, q}}).eval().size(), p * q);
  }
  EXPECT_LE(engine->statistics().plans_made, 1U);
  EXPECT_NE(engine->explain().find("seen 1 of 3 times with these sizes"), std::string::npos)
      << engine->explain();
}

TEST(MovingSlices, Trap_U2_WithoutJoinedSizesSlicesOfStoredTensorsMoveToo) {
  const auto engine = Engine::create({.plans = {.threshold = 1, .wait = true, .joins_sizes = false}});
  const Data d(engine);
  for (std::int64_t p = 0; p < 20; ++p) {
    const auto got = (d.x.slice({{.start = p, .stop = p + 8}}) * 2).to_vector<double>();
    const auto all = d.x.to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], 2 * all[static_cast<std::size_t>(p * width_of_x) + i]) << p;
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}
