#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Integers = std::vector<std::int64_t>;

std::string conv(Shape x, Shape w, Attributes attributes = {}) {
  return inferred("conv", {{Dtype::f32, x}, {Dtype::f32, w}}, attributes);
}
std::string transposed(Shape x, Shape w, Attributes attributes = {}) {
  return inferred("conv_transpose", {{Dtype::f32, x}, {Dtype::f32, w}}, attributes);
}

TEST(Conv, InfersSizes) {
  const Dim N = Dim(ir::size_symbol("N")), H = Dim(ir::size_symbol("H"));
  EXPECT_EQ(
      conv({1, 3, 224, 224}, {64, 3, 7, 7}, {{"strides", Integers{2, 2}}, {"pads", Integers{3, 3, 3, 3}}}),
      "f32[1, 64, 112, 112]");
  EXPECT_EQ(conv({2, 4, 9}, {6, 2, 3}, {{"groups", 2}, {"dilations", Integers{2}}}), "f32[2, 6, 5]");
  EXPECT_EQ(conv({2, 1, 4, 5, 6}, {3, 1, 2, 2, 2}), "f32[2, 3, 3, 4, 5]");
  EXPECT_EQ(conv({N, 3, H, 8}, {4, 3, 3, 3}, {{"pads", Integers{1, 0, 1, 0}}}), "f32[N, 4, H, 6]");
  EXPECT_EQ(conv({N, 3, H}, {4, 3, 3}, {{"strides", Integers{2}}}), "f32[N, 4, (H + 1) // 2 - 1]");
  EXPECT_EQ(transposed({1, 4, 5}, {4, 3, 3}, {{"strides", Integers{2}}}), "f32[1, 3, 11]");
  EXPECT_EQ(transposed({1, 4, 5}, {4, 3, 3}, {{"strides", Integers{2}}, {"output_padding", Integers{1}}}),
            "f32[1, 3, 12]");
  EXPECT_EQ(
      transposed({N, 4, H}, {4, 3, 3}, {{"strides", Integers{2}}, {"pads", Integers{1, 1}}, {"groups", 2}}),
      "f32[N, 6, 2 * H - 1]");
}

TEST(Conv, SaysWhatDisagrees) {
  EXPECT_EQ(conv({2, 3}, {4, 3, 3}),
            "conv: 'x' (f32[2, 3]) has rank 2, expected 3 to 5: batch, channels and 1 to 3 spatial axes");
  EXPECT_EQ(conv({2, 3, 8, 8}, {4, 3, 3}),
            "conv: 'x' (f32[2, 3, 8, 8]) has rank 4, 'w' (f32[4, 3, 3]) has rank 3");
  EXPECT_EQ(
      conv({2, 4, 8}, {6, 3, 3}, {{"groups", 2}}),
      "conv: channels of 'x' (f32[2, 4, 8]) and of 'w' (f32[6, 3, 3]) in 2 groups: 4 and 6 do not agree");
  EXPECT_EQ(conv({2, 4, 8}, {5, 2, 3}, {{"groups", 2}}),
            "conv: the result has 5 channels, which 2 groups do not divide");
  EXPECT_EQ(conv({2, 4, 8}, {5, 4, 3}, {{"groups", 0}}), "conv: 'groups' is 0, expected at least 1");
  EXPECT_EQ(conv({2, 4, 8, 8}, {5, 4, 3, 3}, {{"strides", Integers{2}}}),
            "conv: 'strides' [2] has 1 numbers, expected 2 for 2 spatial axes");
  EXPECT_EQ(conv({2, 4, 8}, {5, 4, 3}, {{"strides", Integers{0}}}),
            "conv: 'strides' [0] has 0, expected 1 to 2147483647");
  EXPECT_EQ(conv({2, 4, 8}, {5, 4, 3}, {{"pads", Integers{-1, 0}}}),
            "conv: 'pads' [-1, 0] has -1, expected 0 to 2147483647");
  EXPECT_EQ(conv({2, 4, 4}, {5, 4, 3}, {{"dilations", Integers{3}}, {"pads", Integers{1, 1}}}),
            "conv: axis 2 of 'x' (f32[2, 4, 4]): the window spans 7 elements, with padding there are 6");
  EXPECT_EQ(inferred("conv", {{Dtype::f32, {2, 4, 8}}, {Dtype::f32, {5, 4, 3}}, {Dtype::f32, {4}}}),
            "conv: size of 'bias' and channels of the result: 4 and 5 do not agree");
  EXPECT_EQ(conv({2, 4, 8}, {5, 4, 0}), "conv: the kernel [0] has size 0, expected at least 1");
}

TEST(Conv, TransposedSaysWhatDisagrees) {
  EXPECT_EQ(transposed({2, 4, 8}, {5, 4, 3}),
            "conv_transpose: channels of 'x' (f32[2, 4, 8]) and of 'w' (f32[5, 4, 3]): 4 and 5 do not agree");
  EXPECT_EQ(transposed({2, 4, 8}, {4, 4, 3}, {{"strides", Integers{2}}, {"output_padding", Integers{2}}}),
            "conv_transpose: axis 2 of the result can have size 17 to 18, not 19");
  EXPECT_EQ(transposed({2, 4, 8}, {4, 4, 3}, {{"strides", Integers{2}}, {"output_size", Shape{16}}}),
            "conv_transpose: axis 2 of the result can have size 17 to 18, not 16");
  EXPECT_EQ(transposed({2, 4, 8}, {4, 4, 3}, {{"output_size", Shape{10}}, {"output_padding", Integers{0}}}),
            "conv_transpose: has both 'output_padding' and 'output_size'");
  EXPECT_EQ(transposed({2, 4, 1}, {4, 4, 3}, {{"pads", Integers{2, 1}}}),
            "conv_transpose: axis 2 of the result would have size 0");
  EXPECT_EQ(inferred("conv_weight_gradient", {{Dtype::f32, {2, 4, 8}}, {Dtype::f32, {2, 5, 7}}},
                     {{"kernel", Shape{3}}}),
            "conv_weight_gradient: axis 2 of 'dy' (f32[2, 5, 7]) and the positions of the window on 'x' "
            "(f32[2, 4, 8]): 7 and 6 do not agree");
}

TEST(Conv, SizesThatOverflowAreRefused) {
  const Dim huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(conv({0, 1, huge}, {1, 1, 1}, {{"pads", Integers{1, 0}}}),
            "conv: a result of shape [0, 1, 1 + 9223372036854775807] has a size that does not fit 64 bits");
  EXPECT_NE(
      conv({1, 1, 4}, {1, 1, 1}, {{"groups", std::numeric_limits<std::int64_t>::max()}}).find("do not agree"),
      std::string::npos);
}

TEST(Conv, ComputesKnownValues) {
  const auto x = counting({1, 1, 5}), w = tensor({1, 1, 3}, {1, 10, 100});
  EXPECT_EQ(doubles(call("conv", {x, w})), (std::vector<double>{210, 321, 432}));
  EXPECT_EQ(doubles(call("conv", {x, w}, {{"pads", Integers{1, 2}}})),
            (std::vector<double>{100, 210, 321, 432, 43, 4}));
  EXPECT_EQ(doubles(call("conv", {x, w}, {{"strides", Integers{2}}})), (std::vector<double>{210, 432}));
  EXPECT_EQ(doubles(call("conv", {x, w}, {{"dilations", Integers{2}}})), std::vector<double>{420});
  EXPECT_EQ(doubles(call("conv", {x, w, tensor({1}, {0.5})})), (std::vector<double>{210.5, 321.5, 432.5}));
  const auto image = counting({1, 1, 3, 3});
  EXPECT_EQ(doubles(call("conv", {image, tensor({1, 1, 2, 2}, {1, 0, 0, -1})})),
            (std::vector<double>{-4, -4, -4, -4}));
}

TEST(Conv, GroupsSeeTheirOwnChannels) {
  const auto x = tensor({1, 4, 1}, {1, 2, 3, 4}), w = tensor({2, 2, 1}, {1, 10, 1, 10});
  EXPECT_EQ(doubles(call("conv", {x, w}, {{"groups", 2}})), (std::vector<double>{21, 43}));
  const auto depthwise = call("conv", {x, tensor({4, 1, 1}, {1, 2, 3, 4})}, {{"groups", 4}});
  EXPECT_EQ(doubles(depthwise), (std::vector<double>{1, 4, 9, 16}));
}

TEST(Conv, TransposedComputesKnownValues) {
  const auto x = tensor({1, 1, 2}, {1, 2}), w = tensor({1, 1, 3}, {1, 10, 100});
  EXPECT_EQ(doubles(call("conv_transpose", {x, w})), (std::vector<double>{1, 12, 120, 200}));
  EXPECT_EQ(doubles(call("conv_transpose", {x, w}, {{"strides", Integers{2}}})),
            (std::vector<double>{1, 10, 102, 20, 200}));
  EXPECT_EQ(
      doubles(call("conv_transpose", {x, w},
                   {{"strides", Integers{2}}, {"pads", Integers{1, 1}}, {"output_padding", Integers{1}}})),
      (std::vector<double>{10, 102, 20, 200}));
}

TEST(Conv, WrapsIntegers) {
  const auto y =
      call("conv", {tensor({1, 2, 1}, {100, 100}, Dtype::i8), tensor({1, 2, 1}, {3, 1}, Dtype::i8)});
  EXPECT_EQ(doubles(y), std::vector<double>{-112}) << "400 as a signed byte";
}

TEST(Conv, OfNoImagesIsEmptyAndOfNoChannelsIsTheBias) {
  EXPECT_EQ(call("conv", {counting({0, 2, 5}), counting({3, 2, 3})}).shape(), (Extents{0, 3, 3}));
  EXPECT_EQ(doubles(call("conv", {counting({1, 0, 5}), counting({2, 0, 4}), tensor({2}, {7, 8})})),
            (std::vector<double>{7, 7, 8, 8}));
}

/// The sum of a * b over all elements.
double inner(const HostTensor& a, const HostTensor& b) {
  const auto x = doubles(a), y = doubles(b);
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

TEST(Conv, TheThreeOpsAreEachOthersAdjoints) {
  // Many positions and channels, so that the columns come in several parts.
  const Attributes window{{"strides", Integers{1, 2}},
                          {"pads", Integers{1, 0, 0, 3}},
                          {"groups", 2},
                          {"dilations", Integers{2, 1}}};
  const auto x = counting({2, 8, 40, 151}, -3, 0.013), w = counting({6, 4, 3, 3}, 1, -0.02);
  const auto y = call("conv", {x, w}, window);
  const auto dy = counting(y.shape(), 5, -0.0007);
  Attributes to_large = window, to_weights = window;
  to_large.set("output_size", Shape{40, 151});
  to_weights.set("kernel", Shape{3, 3});
  const double expected = inner(y, dy);
  EXPECT_NEAR(inner(call("conv_transpose", {dy, w}, to_large), x), expected, 1e-9 * std::abs(expected));
  EXPECT_NEAR(inner(call("conv_weight_gradient", {x, dy}, to_weights), w), expected,
              1e-9 * std::abs(expected));
}

}  // namespace
