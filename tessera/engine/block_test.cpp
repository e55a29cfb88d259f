#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/engine/engine.h"

using namespace tessera;

namespace {

TEST(EngineBlocks, OneNameIsOneNumber) {
  const auto engine = engine::Engine::create({});
  const auto outer = engine->block(0, "encoder");
  EXPECT_EQ(engine->block(0, "encoder"), outer);
  EXPECT_EQ(engine->block_name(engine->block(outer, "layer")), "encoder/layer");
  EXPECT_EQ(engine->block_name(0), "");
}

TEST(EngineBlocks, OneMoreThanThereAreNumbersForIsAnError) {
  const auto engine = engine::Engine::create({});
  for (int i = 0; i < 65'535; ++i) ASSERT_EQ(engine->block(0, cat("step", i)), i + 1);
  EXPECT_EQ(engine->block(0, "step7"), 8);
  try {
    engine->block(8, "one_more");
    FAIL() << "a name was dropped";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code(), ErrorCode::limit);
    EXPECT_EQ(
        e.error().message(),
        "block 'step7/one_more' is one more than the 65535 different blocks of an engine: use names again");
  }
}

}  // namespace
