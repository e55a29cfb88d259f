#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

const Dim B = Dim(ir::size_symbol("B")), L = Dim(ir::size_symbol("L")), S = Dim(ir::size_symbol("S"));

std::string inferred_with(Shape q, Shape k, Shape v) {
  return inferred("attention", {f32(q), f32(k), f32(v)});
}

TEST(Attention, BroadcastsBatches) {
  EXPECT_EQ(inferred_with({L, 8}, {S, 8}, {S, 4}), "f32[L, 4]");
  EXPECT_EQ(inferred_with({B, 3, L, 8}, {3, S, 8}, {S, 4}), "f32[B, 3, L, 4]");
  EXPECT_EQ(inferred("attention", {f32({L, 8}), f32({S, 8}), f32({S, 4}), {Dtype::boolean, {B, 1, S}}}),
            "f32[B, L, 4]");
}

TEST(Attention, SaysWhatDisagrees) {
  EXPECT_EQ(inferred_with({5, 8}, {6, 7}, {6, 4}),
            "attention: the last axes of 'q' (f32[5, 8]) and 'k' (f32[6, 7]): 8 and 7 do not agree");
  EXPECT_EQ(inferred_with({5, 8}, {6, 8}, {7, 4}),
            "attention: keys of 'k' (f32[6, 8]) and values of 'v' (f32[7, 4]): 6 and 7 do not agree");
  EXPECT_EQ(inferred_with({8}, {6, 8}, {6, 4}), "attention: 'q' (f32[8]) has rank 1, expected at least 2");
  EXPECT_EQ(inferred_with({2, 5, 8}, {3, 6, 8}, {6, 4}),
            "attention: the batch sizes [2] of the inputs before and [3] of 'k' (f32[3, 6, 8]) do not agree");
  const auto masked = [](ValueType mask) {
    return inferred("attention", {f32({5, 8}), f32({6, 8}), f32({6, 4}), std::move(mask)});
  };
  EXPECT_EQ(masked({Dtype::boolean, {5, 5}}),
            "attention: keys of 'mask' (bool[5, 5]) and of 'k' (f32[6, 8]): 5 and 6 do not agree");
  EXPECT_EQ(masked({Dtype::boolean, {4, 6}}),
            "attention: queries of 'mask' (bool[4, 6]) and of 'q' (f32[5, 8]): 4 and 5 do not agree");
  EXPECT_EQ(masked({Dtype::f64, {5, 6}}),
            "attention: 'mask' has dtype f64, expected bool or f32, which 'q' has");
}

TEST(Attention, WeighsValuesBySoftmax) {
  const auto q = tensor({1, 1}, {1}), k = tensor({2, 1}, {0, std::log(3)}), v = tensor({2, 2}, {1, 2, 5, 6});
  const auto y = doubles(call("attention", {q, k, v}));
  EXPECT_NEAR(y[0], 4, 1e-14);
  EXPECT_NEAR(y[1], 5, 1e-14);
  EXPECT_NEAR(doubles(call("attention", {q, k, v}, {{"scale", 0.0}}))[0], 3, 1e-14);
  const auto bias = tensor({2}, {std::log(3), 0});
  EXPECT_NEAR(doubles(call("attention", {q, k, v, bias}))[0], 3, 1e-14) << "a mask of numbers is added";
}

TEST(Attention, ScalesByTheDepth) {
  const auto q = tensor({1, 4}, {1, 1, 1, 1}), k = tensor({2, 4}, {0, 0, 0, 0, 2 * std::log(3), 0, 0, 0});
  EXPECT_NEAR(doubles(call("attention", {q, k, tensor({2, 1}, {1, 5})}))[0], 4, 1e-14);
}

TEST(Attention, HidesKeys) {
  const auto q = counting({3, 2}), k = counting({3, 2}), v = tensor({3, 1}, {1, 2, 6});
  const auto causal = doubles(call("attention", {q, k, v}, {{"causal", true}, {"scale", 0.0}}));
  EXPECT_EQ(causal, (std::vector<double>{1, 1.5, 3}));
  const auto mask = tensor({3, 3}, {1, 0, 0, 0, 1, 1, 1, 0, 1}, Dtype::boolean);
  EXPECT_EQ(doubles(call("attention", {q, k, v, mask}, {{"scale", 0.0}})), (std::vector<double>{1, 4, 3.5}));
  EXPECT_EQ(doubles(call("attention", {q, k, v, mask}, {{"scale", 0.0}, {"causal", true}})),
            (std::vector<double>{1, 2, 3.5}));
}

TEST(Attention, WithoutKeysIsZeroAndWithHiddenOnesNaN) {
  const auto none = call("attention", {counting({1, 2}), tensor({0, 2}, {}), tensor({0, 1}, {})});
  EXPECT_EQ(doubles(none), std::vector<double>{0});
  const std::vector<HostTensor> hidden{counting({1, 2}), counting({1, 2}), counting({1, 1}),
                                       tensor({1, 1}, {0}, Dtype::boolean)};
  EXPECT_TRUE(std::isnan(doubles(call("attention", hidden))[0]));
  EXPECT_TRUE(std::isnan(doubles(call_decomposed("attention", hidden))[0]));
}

}  // namespace
