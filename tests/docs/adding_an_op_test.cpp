// The catalogue with the op of docs/adding-an-op.md in it. The tests of the catalogue and of gradients are
// linked in as well, and see it.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_call.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

TEST(AddingAnOp, PutsItInTheCatalogueAndAmongTheSamples) {
  ASSERT_NE(op::find_card("log_sigmoid"), nullptr);
  EXPECT_TRUE(op::find_card("log_sigmoid")->traits.composite);
  const auto& samples = op_samples();
  EXPECT_TRUE(std::any_of(samples.begin(), samples.end(),
                          [](const Sample& sample) { return sample.card->name == "log_sigmoid"; }));
}

TEST(AddingAnOp, ComputesWhatThePageSays) {
  const auto y = doubles(call("log_sigmoid", {tensor({4}, {0, 1, -1000, 1000})}));
  EXPECT_DOUBLE_EQ(y[0], -std::log(2.0));
  EXPECT_DOUBLE_EQ(y[1], std::log(1 / (1 + std::exp(-1.0))));
  EXPECT_EQ(y[2], -1000);
  EXPECT_EQ(y[3], 0);
}

}  // namespace
