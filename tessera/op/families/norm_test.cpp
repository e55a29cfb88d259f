#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

TEST(Norm, InfersShapes) {
  const Dim N = Dim(ir::size_symbol("N")), C = Dim(ir::size_symbol("C"));
  EXPECT_EQ(inferred("layer_norm", {f32({N, 4, 8}), f32({4, 8})}, {{"axis", 1}}), "f32[N, 4, 8]");
  EXPECT_EQ(inferred("batch_norm_training", {f32({N, C, 5}), f32({C}), f32({C})}),
            "f32[N, C, 5] f32[C] f32[C]");
  EXPECT_EQ(inferred("group_norm", {f32({N, 6, 5})}, {{"groups", 3}}), "f32[N, 6, 5]");
}

TEST(Norm, SaysWhatDisagrees) {
  EXPECT_EQ(inferred("layer_norm", {f32({2, 4}), f32({3})}),
            "layer_norm: 'weight' (f32[3]) and the axes from 1 on of 'x' (f32[2, 4]): 3 and 4 do not agree");
  EXPECT_EQ(
      inferred("layer_norm", {f32({2, 4}), f32({4}), f32({2, 4})}),
      "layer_norm: 'bias' (f32[2, 4]) and the axes from 1 on of 'x' (f32[2, 4]): shapes [2, 4] and [4] do "
      "not agree");
  EXPECT_EQ(inferred("rms_norm", {f32({2, 4})}, {{"axis", 2}}),
            "rms_norm: axis 2 is outside [-2, 2) for a tensor of rank 2");
  EXPECT_EQ(inferred("batch_norm", {f32({2, 4}), f32({4}), f32({4}), f32({5}), f32({4})}),
            "batch_norm: 'mean' (f32[5]) and the channels of 'x' (f32[2, 4]): 5 and 4 do not agree");
  EXPECT_EQ(inferred("batch_norm_training", {f32({4}), f32({4}), f32({4})}),
            "batch_norm_training: 'x' (f32[4]) has rank 1, expected at least 2: batch and channels");
  EXPECT_EQ(inferred("group_norm", {f32({2, 4})}, {{"groups", 3}}),
            "group_norm: 'x' (f32[2, 4]) has 4 channels, which 3 groups do not divide");
  EXPECT_EQ(inferred("group_norm", {f32({2, 4})}, {{"groups", 0}}),
            "group_norm: 'groups' is 0, expected at least 1");
  EXPECT_EQ(inferred("group_norm", {f32({2, 4})}), "group_norm: needs the attribute 'groups'");
}

TEST(Norm, OfLayersComputesKnownValues) {
  const auto x = tensor({2, 2}, {1, 5, -3, 3});  // means 3 and 0, variances 4 and 9
  expect_near(call("layer_norm", {x}, {{"epsilon", 0.0}}), {-1, 1, -1, 1});
  const auto weight = tensor({2}, {2, 3}), bias = tensor({2}, {10, 20});
  expect_near(call("layer_norm", {x, weight, bias}, {{"epsilon", 0.0}}), {8, 23, 8, 23});
  expect_near(call("layer_norm", {x, weight}, {{"epsilon", 12.0}}),
              {-1, 1.5, -3 * 2 / std::sqrt(21), 9 / std::sqrt(21)});
  const auto squares = tensor({1, 2}, {1, 7});  // the mean square is 25
  expect_near(call("rms_norm", {squares, weight}, {{"epsilon", 0.0}}), {0.4, 4.2});
}

TEST(Norm, OfGroupsTakesSeveralChannels) {
  const auto x = tensor({1, 4, 1}, {1, 5, -3, 3});
  const auto weight = tensor({4}, {1, 2, 3, 4}), bias = tensor({4}, {1, 1, 1, 1});
  expect_near(call("group_norm", {x, weight, bias}, {{"groups", 2}, {"epsilon", 0.0}}), {0, 3, -2, 5});
  const auto alone = call("group_norm", {x}, {{"groups", 4}});
  EXPECT_EQ(doubles(alone), (std::vector<double>{0, 0, 0, 0}))
      << "one element differs by nothing from its mean";
}

TEST(Norm, OfBatchesGivesTheMomentsItUsed) {
  const auto x = tensor({2, 2, 1}, {1, -3, 5, 3});
  const auto weight = tensor({2}, {1, 2}), bias = tensor({2}, {0, 1});
  const auto trained = call_all("batch_norm_training", {x, weight, bias}, {{"epsilon", 0.0}});
  expect_near(trained[0], {-1, -1, 1, 3});
  expect_near(trained[1], {3, 0});
  expect_near(trained[2], {4, 9});
  const auto used = call("batch_norm", {x, weight, bias, trained[1], trained[2]}, {{"epsilon", 0.0}});
  EXPECT_EQ(largest_difference(used, trained[0]), 0);
}

TEST(Norm, AccumulatesWide) {
  // In f16 the sum of the squares would be infinite.
  const auto x = tensor({4}, {300, -300, 300, -300}, Dtype::f16);
  EXPECT_EQ(doubles(call("rms_norm", {x}, {{"epsilon", 0.0}})), (std::vector<double>{1, -1, 1, -1}));
  EXPECT_EQ(doubles(call("layer_norm", {x}, {{"epsilon", 0.0}})), (std::vector<double>{1, -1, 1, -1}));
}

}  // namespace
