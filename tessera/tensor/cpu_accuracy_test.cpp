// How near functions of f32 come on the CPU, whatever way they are computed: called one by one, in a plan, by
// the interpreter where there is no code, behind a matrix product. docs/kernel.md states the bounds.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "tessera/compile/tiling.h"
#include "tessera/engine/devices.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"
#include "tests/support/repeats.h"

using namespace tessera;

namespace {

struct Function {
  std::string name;
  Tensor (*on_tensors)(const Tensor&);
  double (*exact)(double);
  double most;          ///< units of the last place that it may be off
  double from, to;      ///< between which that holds
  bool ends_a_product;  ///< is part of the step of a product before it
};

double exact_gelu(double x) { return 0.5 * x * std::erfc(x * -0.70710678118654752440); }
double exact_gelu_tanh(double x) {
  return x / (1 + std::exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
double exact_silu(double x) { return x / (1 + std::exp(-x)); }
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double exact_softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

constexpr double all = 1e38;

#define TESSERA_OF(call) [](const Tensor& x) { return call(x); }
#define TESSERA_STD(name) [](double x) { return std::name(x); }
/// What is promised of all; sums of exponentials are promised of `precise` alone.
std::vector<Function> usual_functions() {
  return {{"exp", TESSERA_OF(exp), TESSERA_STD(exp), 2, -87, 88, false},
          {"log", TESSERA_OF(log), TESSERA_STD(log), 2, 1e-38, all, false},
          {"sin", TESSERA_OF(sin), TESSERA_STD(sin), 2, -all, all, false},
          {"cos", TESSERA_OF(cos), TESSERA_STD(cos), 2, -all, all, false},
          {"tanh", TESSERA_OF(tanh), TESSERA_STD(tanh), 6, -all, all, true},
          {"erf", TESSERA_OF(erf), TESSERA_STD(erf), 6, -all, all, false},
          {"gelu", TESSERA_OF(gelu), &exact_gelu, 6, -all, all, true}};
}
std::vector<Function> precise_functions() {
  auto out = usual_functions();
  out.push_back({"gelu_tanh", TESSERA_OF(gelu_tanh), &exact_gelu_tanh, 2, -all, all, true});
  out.push_back({"silu", TESSERA_OF(silu), &exact_silu, 2, -all, all, true});
  out.push_back({"sigmoid", TESSERA_OF(sigmoid), &exact_sigmoid, 2, -all, all, true});
  out.push_back({"softplus", TESSERA_OF(softplus), &exact_softplus, 2, -all, all, false});
  out.push_back({"erfc", TESSERA_OF(erfc), TESSERA_STD(erfc), 2, -all, all, false});
  out.push_back({"expm1", TESSERA_OF(expm1), TESSERA_STD(expm1), 2, -all, 88, false});
  out.push_back({"log1p", TESSERA_OF(log1p), TESSERA_STD(log1p), 2, -0.999, all, false});
  out.push_back({"atan", TESSERA_OF(atan), TESSERA_STD(atan), 2, -all, all, false});
  for (Function& function : out) function.most = 2;
  return out;
}
#undef TESSERA_OF
#undef TESSERA_STD

double off_by(float got, double exact) {
  if (static_cast<float>(exact) == got) return 0;
  if (!std::isfinite(got)) return INFINITY;
  const double size = std::max(std::abs(exact), 0x1p-126);
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, std::ilogb(size) - 23);
}

constexpr std::size_t columns = 64;

/// Floats of all sizes, from the least to the largest, as many as fill rows of 64; at most `most` rows.
std::vector<float> floats_between(double from, double to, std::size_t most) {
  std::vector<float> found;
  const std::uint64_t step = fixture::is_sanitized ? 800'011 : 80'021;
  for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += step)
    if (const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        std::isfinite(x) && x >= from && x <= to && std::abs(x) <= all)
      found.push_back(x);
  std::vector<float> out(std::min(found.size() / columns, most) * columns);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = found[i * found.size() / out.size()];
  return out;
}

enum class AppliedTo { inputs, products };

void expect_within(const Function& function, const std::shared_ptr<Engine>& engine, AppliedTo what,
                   std::string_view where, std::size_t most_rows = 1 << 20) {
  const std::vector<float> x = floats_between(function.from, function.to, most_rows);
  const CreateOptions here{.engine = engine};
  const auto rows = static_cast<std::int64_t>(x.size() / columns);
  const Tensor given = from_vector<float>(x, {rows, std::int64_t{columns}}, here).eval();
  const Tensor same = eye(std::int64_t{columns}, {.engine = engine}).eval();
  std::vector<float> y;
  for (int i = 0; i < 3; ++i) {
    const Tensor of = what == AppliedTo::inputs ? given : matmul(given, same);
    y = function.on_tensors(of).to_vector<float>();
  }
  double worst = 0;
  float at = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const double off = off_by(y[i], function.exact(static_cast<double>(x[i]))); !(off <= worst))
      worst = off, at = x[i];
  EXPECT_LE(worst, function.most) << function.name << " " << where << " at " << at;
}

std::shared_ptr<Engine> streamed_on(const std::shared_ptr<runtime::Device>& device) {
  return Engine::create({.plans = {.enabled = false}, .device = device});
}
std::shared_ptr<Engine> planned_on(const std::shared_ptr<runtime::Device>& device) {
  return Engine::create({.plans = {.threshold = 1, .wait = true}, .device = device});
}

/// A CPU without a compiler.
std::shared_ptr<runtime::Device> interpreting_cpu(bool is_precise) {
  runtime::cpu::CpuOptions options{.kernels = {.compiles = false, .is_precise = is_precise}};
  options.target.sources = {compiler::fused_regions()};
  return std::make_shared<runtime::cpu::CpuDevice>(options);
}

void expect_all_within(std::span<const Function> functions, const std::shared_ptr<runtime::Device>& device,
                       bool is_precise) {
  const auto streamed = streamed_on(device), planned = planned_on(device),
             interpreted = planned_on(interpreting_cpu(is_precise));
  for (const Function& function : functions) {
    expect_within(function, streamed, AppliedTo::inputs, "called alone");
    expect_within(function, streamed, AppliedTo::inputs, "called alone on few numbers", 30);
    expect_within(function, planned, AppliedTo::inputs, "in a plan");
    expect_within(function, interpreted, AppliedTo::inputs, "interpreted");
    if (!function.ends_a_product) continue;
    expect_within(function, streamed, AppliedTo::products, "behind a product, called alone");
    expect_within(function, planned, AppliedTo::products, "behind a product in a plan");
    expect_within(function, planned, AppliedTo::products, "behind a product of few rows", 4);
    expect_within(function, interpreted, AppliedTo::products, "behind a product, interpreted");
  }
}

}  // namespace

// The tests of this room run once for each of several devices: this is about one of them.
#define TESSERA_SKIP_OTHERS() \
  if (std::getenv("TESSERA_DEVICE") != nullptr) GTEST_SKIP() << "another device is tried"

TEST(CpuAccuracy, IsAsStatedOnEveryWay) {
  TESSERA_SKIP_OTHERS();
  expect_all_within(usual_functions(), value_or_throw(engine::find_device("cpu")), false);
}

TEST(CpuAccuracy, PreciseIsWithinTwoUnitsOnEveryWay) {
  TESSERA_SKIP_OTHERS();
  expect_all_within(precise_functions(), value_or_throw(engine::find_device("cpu:precise")), true);
}
