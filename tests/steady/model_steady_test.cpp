// Calls of models allocate the handles that they give and nothing else, in C++ and in C, whatever a plan
// does: also where states go round and sizes change between two that were there.
#include <gtest/gtest.h>

#include "tessera/capi/tessera.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/model/onnx_model.h"
#include "tessera/tensor/create.h"
#include "tests/steady/allocations.h"
#include "tests/support/onnx_file.h"

namespace tessera {
namespace {

using namespace fixture;

constexpr long calls = 1000;

std::shared_ptr<engine::Engine> engine_on_cpu() {
  return engine::Engine::create({.device = value_or_throw(engine::find_device("cpu"))});
}

/// A call gives one vector of handles, from one vector of values.
constexpr long per_call = 2;

TEST(SteadyModel, a_call_allocates_its_handles_alone) {
  const auto engine = engine_on_cpu();
  const OnnxModel model = load_onnx(dense_layer().write("steady.onnx"), {.engine = engine});
  const Tensor x = ones({4, 2}, {.engine = engine}).eval();
  EXPECT_LE(settled_allocations([&](int) { (void)model({x}); }), per_call * calls);
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

TEST(SteadyModel, so_does_a_call_in_c) {
  const std::string path = dense_layer().write("steady_c.onnx");
  tsr_model model = nullptr;
  ASSERT_EQ(tsr_model_load_onnx(path.c_str(), nullptr, &model), TSR_OK) << tsr_last_error();
  tsr_tensor x = nullptr;
  const std::int64_t shape[] = {4, 2};
  ASSERT_EQ(tsr_tensor_init(&x, shape, 2, TSR_BACKEND_F32_CPU), TSR_OK);
  ASSERT_EQ(tsr_tensor_fill(x, 1), TSR_OK);
  ASSERT_EQ(tsr_execute(x), TSR_OK);
  const long count = settled_allocations([&](int) {
    tsr_tensor y = nullptr;
    ASSERT_EQ(tsr_model_call(model, &x, 1, &y, 1), TSR_OK) << tsr_last_error();
    ASSERT_EQ(tsr_tensor_free(y), TSR_OK);
  });
  EXPECT_LE(count,
            (per_call + 2) * calls);  // beside them the list of the inputs, and the handle of the model
  EXPECT_EQ(tsr_tensor_free(x), TSR_OK);
  EXPECT_EQ(tsr_model_free(model), TSR_OK);
}

}  // namespace
}  // namespace tessera
