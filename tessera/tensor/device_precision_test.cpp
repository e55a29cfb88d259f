// How exact f32 products are on a GPU.
#include <gtest/gtest.h>

#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"

using namespace tessera;

namespace {

/// One product of a number that f32 has and TF32, with ten bits of mantissa, has not.
float product_on(const std::shared_ptr<engine::Engine>& engine) {
  const Tensor a = full({256, 256}, 1.0 + 0x1p-14, {.engine = engine});
  const Tensor b = eye(256, {.engine = engine});
  return matmul(a, b).item<float>({3, 5});
}

TEST(ProductPrecision, F32MeansF32UnlessTheDeviceSaysOtherwise) {
  const auto full = engine::find_device("cuda:0"), rounded = engine::find_device("cuda:0:tf32");
  if (!full) GTEST_SKIP() << full.error().to_text();
  ASSERT_TRUE(rounded) << rounded.error().to_text();
  EXPECT_EQ((*rounded)->name(), "cuda:0:tf32");
  EXPECT_EQ(product_on(engine::Engine::create({.device = *full})), 1.0f + 0x1p-14f);
  const auto engine = engine::Engine::create({.device = *rounded});
  EXPECT_EQ(product_on(engine), 1.0f);
  EXPECT_NE(engine->explain().find("tf32"), std::string::npos) << engine->explain();
}

TEST(ProductPrecision, NamesOfGpus) {
  for (const char* name : {"cuda", "cuda:0", "cuda:12", "cuda:tf32", "cuda:0:tf32"})
    EXPECT_TRUE(engine::is_gpu_name(name)) << name;
  for (const char* name :
       {"", "cud", "cuda:", "cuda0", "cuda:-1", "cuda:0:", "cuda:0:tf16", "cuda:99999999999"})
    EXPECT_FALSE(engine::is_gpu_name(name)) << name;
}

}  // namespace
