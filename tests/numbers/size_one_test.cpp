// Reductions over axes of size 1 and 0 have the same bits op by op, by a plan, and on every device.
#include <gtest/gtest.h>

#include <functional>

#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/reference/reference_device.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#ifdef TESSERA_TEST_EMULATOR
#include "tessera/runtime/cuda/emulator/test_devices.h"
#endif

using namespace tessera;

namespace {

using Program = std::function<Tensor(const Tensor&)>;

struct NamedProgram {
  std::string name;
  Program of;
};

/// Every reduction of the catalogue over the last axis, and other sums of one term.
std::vector<NamedProgram> programs() {
  std::vector<NamedProgram> out;
  for (const op::Card* card : op::all_cards()) {
    if (!card->traits.reduction || card->inputs.size() != 1 || !card->T.contains(f32)) continue;
    for (const bool keepdims : {false, true})
      out.push_back({cat(card->name, keepdims ? " kept" : ""), [card, keepdims](const Tensor& x) {
                       return detail::call(*card, detail::CallOperands().add(Operand(x, Here())),
                                           {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", keepdims}});
                     }});
  }
  out.push_back({"cumsum", [](const Tensor& x) { return cumsum(x, {.axis = -1}); }});
  out.push_back({"sum of exp", [](const Tensor& x) { return sum(exp(x) * -0.0, {.axes = {-1}}); }});
  out.push_back({"sum, then neg", [](const Tensor& x) { return -sum(x, {.axes = {-1}}); }});
  out.push_back({"softmax", [](const Tensor& x) { return softmax(x, {.axis = -1}); }});
  out.push_back({"product of matrices", [](const Tensor& x) {
                   const std::int64_t depth = x.dim(-1);
                   return matmul(x, ones({depth, 2}, {.dtype = x.dtype(), .engine = x.engine()}));
                 }});
  return out;
}

/// The bytes of a result, or what is wrong with it.
std::string outcome(const Program& program, const Tensor& x) {
  try {
    const Tensor y = program(x).eval();
    const auto bytes = y.bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const Exception& exception) {
    return "error: " + std::string(to_string(exception.error().code()));
  }
}

struct Trial {
  std::vector<NamedProgram> programs;
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
};

/// Compares with the reference, op by op and as a plan.
void expect_same(const std::shared_ptr<runtime::Device>& device, const Trial& trial) {
  const auto judge = engine::Engine::create(
      {.plans = {.enabled = false}, .device = std::make_shared<runtime::ReferenceDevice>()});
  const auto plain = engine::Engine::create({.plans = {.enabled = false}, .device = device});
  const auto planned = engine::Engine::create({.plans = {.threshold = 1, .wait = true}, .device = device});
  for (const NamedProgram& program : trial.programs)
    for (const Shape& shape : trial.shapes)
      for (const Dtype dtype : trial.dtypes)
        for (const double value : {-0.0, 1.5}) {
          const auto on = [&](const std::shared_ptr<engine::Engine>& engine) {
            return full(shape, value, {.dtype = dtype, .engine = engine}).eval();
          };
          const std::string expected = outcome(program.of, on(judge));
          const std::string what = cat(program.name, " of ", value, " ", dtype, "[", join(shape, ", "), "]");
          EXPECT_EQ(outcome(program.of, on(plain)), expected) << what << ", op by op";
          for (int run = 0; run < 2; ++run)
            EXPECT_EQ(outcome(program.of, on(planned)), expected) << what << ", as a plan";
        }
  EXPECT_GT(planned->statistics().plans_made, trial.programs.size());
}

TEST(Trap_U11, SumsOfOneTermHaveTheSameBitsOnTheCpu) {
  expect_same(*engine::find_device("cpu"),
              {.programs = programs(), .shapes = {{1}, {3, 1}, {1, 1}, {3, 0}}, .dtypes = {f32, f64, f16}});
}

#ifdef TESSERA_TEST_EMULATOR
using SizeOne = runtime::cuda::OnTestDevice;

/// Each kernel is a run of a compiler there.
TEST_P(SizeOne, Trap_U11_SumsOfOneTermHaveTheSameBits) {
  std::vector<NamedProgram> few;
  for (NamedProgram& program : programs())
    if (program.name == "sum" || program.name == "mean" || program.name == "cumsum" ||
        program.name == "product of matrices")
      few.push_back(std::move(program));
  expect_same(device_, {.programs = std::move(few), .shapes = {{3, 1}}, .dtypes = {f32}});
}
INSTANTIATE_TEST_SUITE_P(Devices, SizeOne, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);
#endif

}  // namespace
