// Parts of a tensor at positions that are tensors: as XLA's dynamic slices.
#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"
#include "tests/support/growth.h"
#include "tests/support/message.h"

using namespace tessera;
using engine::Tier;
using fixture::message_of;

namespace {

using Numbers = std::vector<double>;

Tensor position(std::int64_t at, const std::shared_ptr<Engine>& engine = nullptr) {
  return from_vector(std::vector<std::int64_t>{at}, {}, {.engine = engine});
}

Tensor counting(const Shape& shape, const std::shared_ptr<Engine>& engine = nullptr) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return from_vector(values, shape, {.engine = engine});
}

/// x[start:start+2] of 0, 1, 2, 3, 4 by a position.
Numbers taken(std::int64_t at) { return slice_at(counting({5}), {position(at)}, {2}).to_vector<double>(); }

}  // namespace

TEST(SliceAt, IsBroughtInsideItsAxis) {
  EXPECT_EQ(taken(1), (Numbers{1, 2}));
  EXPECT_EQ(taken(4), (Numbers{3, 4}));
  EXPECT_EQ(taken(100), (Numbers{3, 4}));
  EXPECT_EQ(taken(-2), (Numbers{3, 4}));
  EXPECT_EQ(taken(-5), (Numbers{0, 1}));
  EXPECT_EQ(taken(-100), (Numbers{0, 1}));
  EXPECT_EQ(taken(INT64_MAX), (Numbers{3, 4}));
  EXPECT_EQ(taken(INT64_MIN), (Numbers{0, 1}));
}

TEST(SliceAt, TakesAxesAndSteps) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(slice_at(x, {position(1), position(2)}, {2, 2}).to_vector<double>(), (Numbers{6, 7, 10, 11}));
  EXPECT_EQ(slice_at(x, {position(1)}, {1}).to_vector<double>(), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(slice_at(x, {position(9)}, {.sizes = {2}, .steps = {-2}, .axes = {1}}).to_vector<double>(),
            (Numbers{3, 1, 7, 5, 11, 9}));
  const Tensor narrow = from_vector(std::vector<std::int32_t>{1}, {});
  EXPECT_EQ(slice_at(x, {narrow}, {1}).to_vector<double>(), (Numbers{4, 5, 6, 7}));
}

TEST(SliceAt, UpdatesAtPositions) {
  Tensor x = counting({2, 3});
  const Tensor before = x;
  x.update_slice({position(1), position(7)}, counting({1, 2}) + 10);
  EXPECT_EQ(x.to_vector<double>(), (Numbers{0, 1, 2, 3, 10, 11}));
  EXPECT_EQ(before.to_vector<double>(), (Numbers{0, 1, 2, 3, 4, 5}));
  x.update_slice({}, before);
  EXPECT_EQ(x.to_vector<double>(), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(SliceAt, SaysWhatDisagrees) {
  const Tensor x = counting({2, 3});
  const Tensor p = position(0);
  EXPECT_NE(
      message_of([&] {
        (void)slice_at(x, {p}, {3});
      }).find("slice_at: a part of size 3 in steps of 1 does not fit into axis 0 of 'x', which has size 2"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)slice_at(x, {p}, {1, 1});
            }).find("'sizes' has 2 entries, there are 1 positions"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)slice_at(x, {x}, {1}); }).find("'positions[0]'"), std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)slice_at(x, {p, p, p}, {1, 1, 1});
            }).find("'positions' has 3 entries, 'x' has rank 2"),
            std::string::npos);
}

TEST(SliceAt, HasTheGradientOfASlice) {
  for (const std::int64_t at : {0, 2, 9}) {
    Tensor x = counting({4, 3}).eval(), same = counting({4, 3}).eval();
    x.requires_grad();
    same.requires_grad();
    const Tensor part = slice_at(x, {position(at)}, {2});
    const std::int64_t start = std::min<std::int64_t>(at, 2);
    const Tensor fixed = same.slice({{.start = start, .stop = start + 2}});
    sum(part * part).backward();
    sum(fixed * fixed).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), same.grad().to_vector<double>()) << at;
  }
}

TEST(SliceAt, HasTheGradientsOfAnUpdate) {
  Tensor x = counting({4, 3}).eval(), update = counting({2, 3}).eval();
  x.requires_grad();
  update.requires_grad();
  Tensor y = x * 1;
  y.update_slice({position(1)}, update * 2);
  sum(y * y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{0, 2, 4, 0, 0, 0, 0, 0, 0, 18, 20, 22}));
  EXPECT_EQ(update.grad().to_vector<double>(), (Numbers{0, 8, 16, 24, 32, 40}));
}

TEST(SliceAt, MovesInOnePlan) {
  const auto engine = Engine::create({.plans = {.wait = true}});
  const Tensor x = counting({16, 3}, engine).eval();
  for (std::int64_t p = 0; p < 14; ++p) {
    const Tensor at = position(p, engine).eval();
    const Numbers got = (slice_at(x, {at}, {2}) * 2).to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], 2.0 * (3.0 * static_cast<double>(p) + static_cast<double>(i)));
    if (p < 3) continue;
    EXPECT_LE(engine->report().components.at(0).tier, Tier::warm) << engine->explain();
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

TEST(SliceAt, StandsInCompiledFunctions) {
  const auto engine = Engine::create({.plans = {.wait = true}});
  const Tensor x = counting({16}, engine).eval();
  auto window = compile([](const Tensor& all, const Tensor& at) {
    Tensor out = all * 1;
    out.update_slice({at}, slice_at(all, {at + 2}, {2}) * 10);
    return out;
  });
  for (std::int64_t p = 0; p < 8; ++p) {
    const Numbers got = window(x, position(p, engine)).to_vector<double>();
    for (std::int64_t i = 0; i < 16; ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(i)],
                static_cast<double>(i == p || i == p + 1 ? 10 * (i + 2) : i))
          << p;
  }
}

TEST(SliceAt, StandsInLoops) {
  const Tensor x = counting({6, 2});
  const Tensor total = for_loop(
      5, [&](const Tensor& i, const Tensors& s) { return Tensors{s[0] + slice_at(x, {i}, {2}) * 1}; },
      {zeros({2, 2})})[0];
  EXPECT_EQ(total.to_vector<double>(), (Numbers{20, 25, 30, 35}));
  const auto filled =
      while_loop([](const Tensors& s) { return s[0] < 4; },
                 [](const Tensors& s) {
                   Tensor list = s[1];
                   list.update_slice({s[0]}, cast(reshape(s[0] * s[0], {.shape = {1}}), {.dtype = f32}));
                   return Tensors{s[0] + 1, list};
                 },
                 {position(0), zeros({5})});
  EXPECT_EQ(filled[1].to_vector<double>(), (Numbers{0, 1, 4, 9, 0}));
}

namespace {

/// Writes a row of a cache and reads it again, for some rows.
void fill_cache(std::int64_t size) {
  constexpr std::int64_t written = 1000, width = 32;
  const Tensor cache = zeros({size, width}).eval();
  const auto loop = for_loop(written,
                             [](const Tensor& i, const Tensors& s) {
                               Tensor now = s[0];
                               now.update_slice({i}, s[1] + 1);
                               return Tensors{now, slice_at(now, {i}, {1})};
                             },
                             {cache, zeros({1, width})});
  EXPECT_EQ(loop[1].to_vector<double>()[0], static_cast<double>(written));
}

}  // namespace

TEST(SliceAt, ALoopDoesNotCopyItsCache) {
  fill_cache(512);  // makes what both need
  // 1000 copies of the larger one would take 64 times as long.
  EXPECT_LT(fixture::growth(std::int64_t{1024}, std::int64_t{65536}, fill_cache), 16);
}
