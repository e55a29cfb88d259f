// How far the functions of f32 are from the exact result, in units of its last place.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/kernel/block_loops.h"

using namespace tessera;
using namespace tessera::kernel;
using ir::ScalarOpcode;

namespace {

struct Function {
  ScalarOpcode opcode;
  double (*exact)(double);
  double limit;  ///< ulp
};

const Function functions[] = {
    {ScalarOpcode::exp, [](double x) { return std::exp(x); }, 2},
    {ScalarOpcode::exp2, [](double x) { return std::exp2(x); }, 2},
    {ScalarOpcode::expm1, [](double x) { return std::expm1(x); }, 4},
    {ScalarOpcode::log, [](double x) { return std::log(x); }, 2},
    {ScalarOpcode::log2, [](double x) { return std::log2(x); }, 3},
    {ScalarOpcode::log1p, [](double x) { return std::log1p(x); }, 3},
    {ScalarOpcode::sin, [](double x) { return std::sin(x); }, 2},
    {ScalarOpcode::cos, [](double x) { return std::cos(x); }, 2},
    {ScalarOpcode::tanh, [](double x) { return std::tanh(x); }, 6},
    {ScalarOpcode::erf, [](double x) { return std::erf(x); }, 6},
    {ScalarOpcode::erfc, [](double x) { return std::erfc(x); }, 6},
};

/// |got - exact| in units of the last place of exact; those of the smallest normal number below it.
double ulps(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : INFINITY;
  const double magnitude = std::max(std::abs(exact), 1.1754943508222875e-38);
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

struct Worst {
  double error = 0;
  float at = 0;
};

Worst worst_of(const LoopTable& table, const Function& function, std::uint32_t step) {
  const auto loop = table.operation[static_cast<std::size_t>(function.opcode)][0][0];
  Worst out;
  float x[256], y[256];
  std::size_t n = 0;
  const auto flush = [&] {
    loop(x, nullptr, nullptr, y, n);
    for (std::size_t i = 0; i < n; ++i) {
      const double error = ulps(y[i], function.exact(static_cast<double>(x[i])));
      if (error > out.error) out = {error, x[i]};
    }
    n = 0;
  };
  for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += step) {
    x[n++] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (n == 256) flush();
  }
  flush();
  return out;
}

void check(const LoopTable& table) {
  for (const Function& function : functions) {
    const Worst worst = worst_of(table, function, 4099);
    EXPECT_LE(worst.error, function.limit) << ir::to_string(function.opcode) << " at " << worst.at;
    ::testing::Test::RecordProperty(std::string(ir::to_string(function.opcode)), cat(worst.error));
  }
}

TEST(VectorMath, KeepsItsLimitsOverAllFloats) { check(block_loops()); }
TEST(VectorMath, KeepsItsLimitsWithoutVectorInstructions) { check(baseline::loops()); }

/// All floats where they come near 1: rounding must not pass it, and the limits hold for each.
TEST(VectorMath, StaysWithinOneWhereItComesNear) {
  for (const Function& function : functions) {
    if (function.opcode != ScalarOpcode::tanh && function.opcode != ScalarOpcode::erf) continue;
    const auto loop = block_loops().operation[static_cast<std::size_t>(function.opcode)][0][0];
    const bool is_tanh = function.opcode == ScalarOpcode::tanh;
    const auto begin = std::bit_cast<std::uint32_t>(is_tanh ? 7.0f : 3.5f);
    const auto end = std::bit_cast<std::uint32_t>(is_tanh ? 9.1f : 4.0f);
    double worst = 0;
    float largest = 0;
    for (std::uint32_t bits = begin; bits < end; ++bits) {
      const auto x = std::bit_cast<float>(bits);
      const float both[] = {x, -x};
      float y[2];
      loop(both, nullptr, nullptr, y, 2);
      largest = std::max({largest, y[0], -y[1]});
      worst = std::max(worst, ulps(y[0], function.exact(static_cast<double>(x))));
    }
    EXPECT_LE(largest, 1.0f) << ir::to_string(function.opcode);
    EXPECT_LE(worst, function.limit) << ir::to_string(function.opcode);
  }
}

TEST(VectorMath, IsRightAtTheEdges) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float edges[] = {0.0f,   -0.0f, inf,   -inf,    nan,     1.0f,    -1.0f,    1e-45f, -1e-45f,
                         1e-38f, 88.7f, 88.8f, -103.9f, -104.0f, 3.4e38f, -3.4e38f, 0.5f,   39999.0f};
  for (const Function& function : functions)
    for (float x : edges) {
      float y = 0;
      block_loops().operation[static_cast<std::size_t>(function.opcode)][0][0](&x, nullptr, nullptr, &y, 1);
      EXPECT_LE(ulps(y, function.exact(static_cast<double>(x))), function.limit)
          << ir::to_string(function.opcode) << "(" << x << ") = " << y;
    }
}

}  // namespace
