#include "tessera/runtime/cuda/loop_source.h"

#include <limits>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cuda;

namespace {

class LoopSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static void expect_same(const std::string& text, const std::vector<op::HostTensor>& inputs,
                          double tolerance, std::span<const double> numbers = {}) {
    SCOPED_TRACE(text);
    const auto function = parsed(text);
    op::InterpreterOptions options;
    const auto bits = fixture::slot_bits(*function, numbers);
    options.parameters = bits;
    const auto expected = value_or_throw(op::interpret(*function, inputs, options));
    const auto results = empty_like(expected);
    const StepProgram program =
        value_or_throw(loop_program(*function, arrays_of(inputs), arrays_of(results)));
    ASSERT_EQ(program.launches.size(), 1u);
    Emulator emulator;
    const auto compiled = emulator.compile({&program, 1});
    ASSERT_TRUE(compiled) << compiled.error().to_text();
    for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) {
      const auto done = emulator.run(program, arrays_of(inputs), arrays_of(results), numbers, order);
      ASSERT_TRUE(done) << done.error().to_text();
      for (std::size_t i = 0; i < results.size(); ++i)
        EXPECT_LE(difference(results[i], expected[i]), tolerance) << "result " << i << to_text(program);
    }
    if (!why_no_nvrtc().empty()) return;
    const auto taken = check_by_nvrtc(*program.launches[0].source, "sm_90");
    EXPECT_TRUE(taken) << taken.error().to_text();
  }
};

constexpr const char* counted = R"(func f(n: i64[], x: f32[100], w: f32[100]) {
  y: f32[100], k: i64[] = for n (x, 0:i64) with (w) (i: i64[], s: f32[100], c: i64[], v: f32[100]) {
    a: f32[100] = mul(s, v)
    b: f32[100] = tanh(a)
    d: i64[] = add(c, i)
    return b, d
  }
  return y, k
})";

TEST_F(LoopSourceTest, Trap_G19_ForOfAnyCount) {
  std::mt19937_64 random(1);
  const auto x = random_tensor(Dtype::f32, {100}, random), w = random_tensor(Dtype::f32, {100}, random);
  for (const std::int64_t n : {-3, 0, 1, 2, 25}) expect_same(counted, {number(n), x, w}, 1e-5);
}

TEST_F(LoopSourceTest, WhileWithSumsInItsConditionAndNumbers) {
  std::mt19937_64 random(2);
  const auto x = random_tensor(Dtype::f32, {3, 50}, random);
  const std::string text = R"(func f(x: f32[3, 50]) {
  y: f32[3, 50], k: i32[] = while (x, 0:i32) with ($0:f32) limit 100 (s: f32[3, 50], c: i32[], e: f32[]) {
    q: f32[3, 50] = square(s)
    t: f32[] = sum(q)
    m: bool[] = gt(t, e)
    return m
  } do (s: f32[3, 50], c: i32[], e: f32[]) {
    m: f32[3, 1] = mean(s) {axes = [1], keepdims = true}
    d: f32[3, 50] = sub(s, m)
    h: f32[3, 50] = mul(d, 0.5:f32)
    n: i32[] = add(c, 1:i32)
    return h, n
  }
  return y, k
})";
  for (const double eps : {0.001, 5.0, 1e9}) expect_same(text, {x}, 1e-5, std::vector{eps});
}

/// A turn adds 1 to `size` numbers as long as the condition, a text that says what `m` is, holds.
std::string counting_while(int size, const std::string& condition, int limit = 100) {
  const std::string type = cat("f32[", size, "]");
  return cat("func f(x: ", type, ") {\n  y: ", type, " = while (x) with () limit ", limit, " (s: ", type,
             ") {\n", condition, "    return m\n  } do (s: ", type, ") {\n    t: ", type,
             " = add(s, 1.0:f32)\n    return t\n  }\n  return y\n}");
}
std::string until_first(int size) {
  return counting_while(size, cat("    a: f32[1] = slice(s) {starts = [", size - 1, "], stops = [", size,
                                  "], steps = [1]}\n    b: f32[] = reshape(a) {shape = []}\n"
                                  "    m: bool[] = lt(b, 9.0:f32)\n"));
}
/// `turns` of them, if it begins with zeros.
std::string until_sum(int size, int turns = 9, int limit = 100) {
  return counting_while(size, cat("    b: f32[] = sum(s)\n    m: bool[] = lt(b, ", turns * size, ".0:f32)\n"),
                        limit);
}
op::HostTensor zeros(int size) { return value_or_throw(op::HostTensor::allocate(Dtype::f32, {size})); }
std::string source_of(const std::string& text, const std::vector<op::HostTensor>& inputs,
                      const std::vector<op::HostTensor>& results) {
  const auto program = value_or_throw(loop_program(*parsed(text), arrays_of(inputs), arrays_of(results)));
  return program.launches[0].source->text;
}
/// Barriers of a turn: those between the begin of the loop and its end.
std::size_t barriers_of_turn(const std::string& text, const std::vector<op::HostTensor>& inputs) {
  const std::string source = source_of(text, inputs, inputs);
  const std::string_view barrier = "__syncthreads();";
  const std::size_t begin = source.find("for (long long iteration"),
                    end = std::min(source.find("next0 = other;", begin),
                                   source.find("= held_next0[u];", begin));
  EXPECT_NE(end, std::string::npos) << source;
  std::size_t out = 0;
  for (std::size_t at = source.find(barrier, begin); at < end; at = source.find(barrier, at + 1)) ++out;
  return out;
}

TEST_F(LoopSourceTest, WhilesOnTheirDataOfEverySize) {
  std::mt19937_64 random(7);
  for (const int size : {1, 31, 128, 129, 1024, 1025, 5000, 9001}) {
    const auto x = random_tensor(Dtype::f32, {size}, random);
    expect_same(until_first(size), {x}, 1e-5);
    expect_same(until_sum(size), {x}, 1e-5);
  }
}

TEST_F(LoopSourceTest, ATurnHasOneBarrierAndInAWarpNone) {
  EXPECT_EQ(barriers_of_turn(until_first(1024), {zeros(1024)}), 1u);
  EXPECT_EQ(barriers_of_turn(until_sum(2048), {zeros(2048)}), 1u);
  EXPECT_EQ(barriers_of_turn(until_sum(1024), {zeros(1024)}), 0u);
  EXPECT_EQ(barriers_of_turn(until_sum(100), {zeros(100)}), 0u);
}

/// The turns that a warp does before it knows that they are to be done; 0: none.
int turns_ahead(const std::string& source) {
  const std::string_view begin = "for (; ahead + ";
  const std::size_t at = source.find(begin);
  return at == std::string::npos ? 0 : std::stoi(source.substr(at + begin.size()));
}

TEST_F(LoopSourceTest, AWarpThatJoinsNumbersForItsConditionDoesTurnsAhead) {
  EXPECT_EQ(turns_ahead(source_of(until_sum(1024), {zeros(1024)}, {zeros(1024)})), 4);
  EXPECT_EQ(turns_ahead(source_of(until_sum(100), {zeros(100)}, {zeros(100)})), 8);
  EXPECT_EQ(turns_ahead(source_of(until_sum(2048), {zeros(2048)}, {zeros(2048)})), 0) << "several warps";
  EXPECT_EQ(turns_ahead(source_of(until_first(100), {zeros(100)}, {zeros(100)})), 0) << "nothing is joined";
}

TEST_F(LoopSourceTest, TurnsThatWereDoneInVainLeaveNothingBehind) {
  for (const int turns : {0, 5, 8, 17}) expect_same(until_sum(70, turns), {zeros(70)}, 0);
  for (const int turns : {1, 4, 7}) expect_same(until_sum(1000, turns), {zeros(1000)}, 0);
}

TEST_F(LoopSourceTest, ConditionsOfSeveralSumsOfWhatIsNoNumber) {
  const std::string text = R"(func f(x: f32[200], h: f16[200], e: f32[]) {
  y: f32[200], g: f16[200] = while (x, h) with (e) limit 60 (s: f32[200], t: f16[200], e: f32[]) {
    q: f32[200] = cast(t) {dtype = f32}
    r: f32[200] = add(s, q)
    a: f32[] = max(r)
    b: f32[] = sum(r)
    c: f32[] = add(a, b)
    m: bool[] = lt(c, e)
    return m
  } do (s: f32[200], t: f16[200], e: f32[]) {
    p: f32[200] = add(s, 0.5:f32)
    q: f16[200] = mul(t, 0.75:f16)
    return p, q
  }
  return y, g
})";
  std::mt19937_64 random(9);
  const auto e = op::HostTensor::of<float>(Dtype::f32, {}, std::vector{900.0f});
  auto x = random_tensor(Dtype::f32, {200}, random), h = random_tensor(Dtype::f16, {200}, random);
  EXPECT_GT(turns_ahead(source_of(text, {x, h, e}, {x, h})), 0);
  expect_same(text, {x, h, e}, 1e-3);
  x.values<float>()[77] = std::numeric_limits<float>::quiet_NaN();
  expect_same(text, {x, h, e}, 1e-3);
}

TEST_F(LoopSourceTest, Trap_G12_TurnsAheadEndAtTheLimit) {
  for (const int limit : {7, 8, 17}) {
    expect_same(until_sum(70, limit, limit), {zeros(70)}, 0);
    const std::vector<op::HostTensor> inputs{zeros(70)};
    const StepProgram program = value_or_throw(
        loop_program(*parsed(until_sum(70, limit + 1, limit)), arrays_of(inputs), arrays_of(inputs)));
    Emulator emulator;
    ASSERT_TRUE(emulator.compile({&program, 1}));
    const auto done = emulator.run(program, arrays_of(inputs), arrays_of(inputs));
    ASSERT_FALSE(done) << limit;
    EXPECT_EQ(done.error().code(), ErrorCode::limit);
  }
}

TEST_F(LoopSourceTest, WhatIsSummedUpInEachTurnStaysInRegisters) {
  const auto text = [](int size) {
    const std::string x = cat("f32[", size, "]");
    return cat("func f(x: ", x, ", h: f16[70]) {\n  y: ", x,
               ", g: f16[70], k: i32[] = while (x, h, 0:i32) with (x) limit 50 (s: ", x,
               ", t: f16[70], c: i32[], w: ", x, R"() {
    b: f32[] = sum(s)
    m: bool[] = lt(b, 1000.0:f32)
    return m
  } do (s: )",
               x, ", t: f16[70], c: i32[], w: ", x, ") {\n    p: ", x, " = square(w)\n    q: ", x,
               " = add(s, p)\n", R"(    v: f16[70] = mul(t, 0.5:f16)
    n: i32[] = add(c, 1:i32)
    return q, v, n
  }
  return y, g, k
})");
  };
  std::mt19937_64 random(8);
  for (const int size : {33, 100, 1024, 1500, 9000}) {
    const std::vector<op::HostTensor> inputs{random_tensor(Dtype::f32, {size}, random),
                                             random_tensor(Dtype::f16, {70}, random)};
    expect_same(text(size), inputs, 1e-3);
    const auto function = parsed(text(size));
    const auto results = empty_like(value_or_throw(op::interpret(*function, inputs)));
    const auto program = value_or_throw(loop_program(*function, arrays_of(inputs), arrays_of(results)));
    const std::string& source = program.launches[0].source->text;
    EXPECT_EQ(source.find("held_now0") != std::string::npos, size <= 8192) << source;
    EXPECT_EQ(source.find("held_now2"), std::string::npos) << "a number that all threads may want";
  }
}

TEST_F(LoopSourceTest, ThreadsWaitForWhatOthersWrote) {
  std::mt19937_64 random(4);
  const auto x = random_tensor(Dtype::f32, {12, 12}, random);
  expect_same(R"(func f(x: f32[12, 12]) {
  y: f32[12, 12] = for 5:i64 (x) with () (i: i64[], s: f32[12, 12]) {
    t: f32[12, 12] = transpose(s) {permutation = [1, 0]}
    h: f32[12, 12] = mul(t, 0.5:f32)
    q: f32[12, 12] = add(h, s)
    return q
  }
  return y
})",
              {x}, 1e-5);
}

TEST_F(LoopSourceTest, WhatIsCarriedPointByPointStaysInRegisters) {
  const std::string text = R"(func f(x: f32[40], w: f32[40]) {
  y: f32[40], z: f32[40] = for 7:i64 (x, w) with (w) (i: i64[], s: f32[40], t: f32[40], w: f32[40]) {
    k: f32[] = cast(i) {dtype = f32}
    p: f32[40] = mul(s, 0.5:f32)
    q: f32[40] = add(p, t)
    u: f32[40] = add(q, k)
    v: f32[40] = mul(s, w)
    return u, v
  }
  return y, z
})";
  std::mt19937_64 random(5);
  const std::vector<op::HostTensor> inputs{random_tensor(Dtype::f32, {40}, random),
                                           random_tensor(Dtype::f32, {40}, random)};
  expect_same(text, inputs, 1e-5);
  const auto arrays = arrays_of(inputs);
  const StepProgram program = value_or_throw(loop_program(*parsed(text), arrays, arrays));
  EXPECT_NE(program.launches[0].source->text.find("next_state1"), std::string::npos)
      << program.launches[0].source->text;
}

TEST_F(LoopSourceTest, NumbersAndHalvesAreCarriedToo) {
  std::mt19937_64 random(6);
  for (const std::int64_t n : {0, 1, 6}) {
    expect_same(R"(func f(n: i64[], x: f32[]) {
  y: f32[] = for n (x) with () (i: i64[], s: f32[]) {
    k: f32[] = cast(i) {dtype = f32}
    p: f32[] = mul(s, 0.5:f32)
    q: f32[] = add(p, k)
    return q
  }
  return y
})",
                {number(n), op::HostTensor::of<float>(Dtype::f32, {}, std::vector{3.0f})}, 1e-6);
    expect_same(R"(func f(n: i64[], x: f16[3, 11]) {
  y: f16[3, 11] = for n (x) with () (i: i64[], s: f16[3, 11]) {
    p: f16[3, 11] = mul(s, 0.75:f16)
    return p
  }
  return y
})",
                {number(n), random_tensor(Dtype::f16, {3, 11}, random)}, 1e-3);
  }
}

TEST_F(LoopSourceTest, LargeStatesLieInMemory) {
  std::mt19937_64 random(3);
  const auto x = random_tensor(Dtype::f32, {70, 200}, random);
  expect_same(R"(func f(x: f32[70, 200]) {
  y: f32[70, 200] = for 4:i64 (x) with () (i: i64[], s: f32[70, 200]) {
    p: f32[70, 200] = softmax(s)
    q: f32[70, 200] = add(p, s)
    return q
  }
  return y
})",
              {x}, 1e-5);
}

TEST_F(LoopSourceTest, Trap_G12_AWhileThatNeverEndsSaysSo) {
  const auto function = parsed(R"(func loop(x: f32[4]) {
  y: f32[4] = while (x) with () limit 10 (s: f32[4]) {
    return true
  } do (s: f32[4]) {
    t: f32[4] = add(s, 1.0:f32)
    return t
  }
  return y
})");
  const std::vector<op::HostTensor> inputs{value_or_throw(op::HostTensor::allocate(Dtype::f32, {4}))};
  const StepProgram program = value_or_throw(loop_program(*function, arrays_of(inputs), arrays_of(inputs)));
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  const auto done = emulator.run(program, arrays_of(inputs), arrays_of(inputs));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::limit);
  EXPECT_NE(done.error().to_text().find("limit of 10 iterations"), std::string::npos)
      << done.error().to_text();
}

TEST(LoopSource, WhatOneBlockCannotHoldIsAnError) {
  const auto function = parsed(R"(func f(x: f32[1000000]) {
  y: f32[1000000] = for 4:i64 (x) with () (i: i64[], s: f32[1000000]) {
    q: f32[1000000] = neg(s)
    return q
  }
  return y
})");
  const std::vector<op::Array> x{{Dtype::f32, op::contiguous({1000000}), reinterpret_cast<std::byte*>(4096)}};
  const auto program = loop_program(*function, x, x);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), ErrorCode::unsupported);
}

}  // namespace
