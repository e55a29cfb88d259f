// The catalogue with the op of docs/adding-an-op.md in it. The tests of the catalogue and of gradients are
// linked in as well, and see it.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/engine/devices.h"
#include "tessera/op/op_facts.h"
#include "tests/docs/added_op_plans.h"
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

TEST(AddingAnOp, ItsNamesElsewhereAreKnown) {
  for (const char* name : {"log_sigmoid", "torch.nn.LogSigmoid", "torch.nn.modules.activation.LogSigmoid",
                           "F.logsigmoid", "torch._C._nn.log_sigmoid", "aten::log_sigmoid.default"})
    EXPECT_EQ(op::op_facts()->find(name).canonical, "log_sigmoid") << name;
}

TEST(AddingAnOp, TheCpuFusesItWithItsNeighbours) {
  EXPECT_EQ(steps_among_neighbours(*value_or_throw(engine::find_device("cpu"))), "mul log_sigmoid exp sum\n");
}

TEST(AddingAnOp, TheCpuComputesItAtTheEndOfAProduct) {
  EXPECT_EQ(steps_behind_a_product(*value_or_throw(engine::find_device("cpu"))),
            "matmul add log_sigmoid add\n");
}

}  // namespace
