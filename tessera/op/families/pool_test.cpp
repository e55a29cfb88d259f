#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Integers = std::vector<std::int64_t>;

std::string pooled(std::string_view op, Shape x, Attributes attributes) {
  return inferred(op, {{Dtype::f32, x}}, attributes);
}

TEST(Pool, InfersSizes) {
  const Dim N = Dim(ir::size_symbol("N")), H = Dim(ir::size_symbol("H", {1, {}}));
  EXPECT_EQ(pooled("avg_pool", {1, 3, 8, 8}, {{"kernel", Integers{2, 2}}, {"strides", Integers{2, 2}}}),
            "f32[1, 3, 4, 4]");
  EXPECT_EQ(pooled("avg_pool", {1, 3, 8}, {{"kernel", Integers{3}}}), "f32[1, 3, 6]");
  EXPECT_EQ(pooled("avg_pool", {1, 3, 6}, {{"kernel", Integers{3}}, {"strides", Integers{2}}}),
            "f32[1, 3, 2]");
  EXPECT_EQ(
      pooled("avg_pool", {1, 3, 6}, {{"kernel", Integers{3}}, {"strides", Integers{2}}, {"ceil_mode", true}}),
      "f32[1, 3, 3]");
  // A fourth window would begin in the padding at the end.
  EXPECT_EQ(
      pooled(
          "avg_pool", {1, 1, 5},
          {{"kernel", Integers{2}}, {"strides", Integers{3}}, {"pads", Integers{1, 1}}, {"ceil_mode", true}}),
      "f32[1, 1, 2]");
  EXPECT_EQ(pooled("max_pool", {N, 3, H}, {{"kernel", Integers{2}}, {"strides", Integers{2}}}),
            "f32[N, 3, H // 2] i64[N, 3, H // 2]");
  EXPECT_EQ(pooled("global_avg_pool", {N, 3, H, 7}, {}), "f32[N, 3, 1, 1]");
}

TEST(Pool, SaysWhatDisagrees) {
  EXPECT_EQ(pooled("max_pool", {1, 3, 8}, {{"kernel", Integers{2, 2}}}),
            "max_pool: 'kernel' [2, 2] has 2 sizes, expected 1");
  EXPECT_EQ(pooled("max_pool", {3, 8}, {{"kernel", Integers{2}}}),
            "max_pool: 'x' (f32[3, 8]) has rank 2, expected 3 to 5: batch, channels and 1 to 3 spatial axes");
  EXPECT_EQ(pooled("max_pool", {1, 3, 8}, {}), "max_pool: needs the attribute 'kernel'");
  EXPECT_EQ(
      pooled("max_pool", {1, 3, 8}, {{"kernel", Integers{3}}, {"pads", Integers{2, 0}}}),
      "max_pool: 'pads' has 2 for axis 2, at most half of the 3 elements that the window spans is allowed");
  EXPECT_EQ(
      pooled("max_pool", {1, 3, 1},
             {{"kernel", Integers{2}}, {"pads", Integers{1, 1}}, {"dilations", Integers{2}}}),
      "max_pool: 'dilations' has 2 for axis 2, which has size 1: a window could see nothing but padding");
  EXPECT_EQ(pooled("avg_pool", {1, 3, 2}, {{"kernel", Integers{3}}}),
            "avg_pool: axis 2 of 'x' (f32[1, 3, 2]): the window spans 3 elements, with padding there are 2");
  EXPECT_EQ(pooled("avg_pool", {1, 3, 0}, {{"kernel", Integers{2}}, {"pads", Integers{1, 1}}}),
            "avg_pool: axis 2 has no elements");
  EXPECT_EQ(pooled("global_max_pool", {1, 3, 0}, {}),
            "global_max_pool: axis 2 of 'x' (f32[1, 3, 0]) has no elements");
  EXPECT_EQ(pooled("global_max_pool", {1, 3}, {}),
            "global_max_pool: 'x' (f32[1, 3]) has rank 2, expected batch, channels and spatial axes");
  EXPECT_EQ(pooled("avg_pool_gradient", {1, 3, 4}, {{"kernel", Integers{2}}, {"size", Shape{4}}}),
            "avg_pool_gradient: axis 2 of 'dy' (f32[1, 3, 4]) and the positions of the window on f32[1, 3, "
            "4]: 4 and 3 "
            "do not agree");
}

TEST(Pool, MaxGivesValuesAndTheirIndices) {
  const auto x = tensor({1, 1, 3, 3}, {1, 5, 2, 9, 0, 3, 4, 8, 7});
  const auto y = call_all("max_pool", {x}, {{"kernel", Integers{2, 2}}});
  EXPECT_EQ(doubles(y[0]), (std::vector<double>{9, 5, 9, 8}));
  EXPECT_EQ(doubles(y[1]), (std::vector<double>{3, 1, 3, 7}));
  const auto padded = call_all("max_pool", {tensor({1, 2, 3}, {-1, -2, -3, -6, -5, -4})},
                               {{"kernel", Integers{2}}, {"strides", Integers{2}}, {"pads", Integers{1, 0}}});
  EXPECT_EQ(doubles(padded[0]), (std::vector<double>{-1, -2, -6, -4})) << "padding is no element";
  EXPECT_EQ(doubles(padded[1]), (std::vector<double>{0, 1, 0, 2})) << "counted within a channel";
  const auto dilated = call_all("max_pool", {tensor({1, 1, 5}, {5, 1, 2, 3, 4})},
                                {{"kernel", Integers{2}}, {"dilations", Integers{3}}});
  EXPECT_EQ(doubles(dilated[0]), (std::vector<double>{5, 4}));
}

TEST(Pool, MaxTakesTheFirstOfEqualsAndNaN) {
  const auto ties = call_all("max_pool", {tensor({1, 1, 4}, {2, 2, 1, 2})}, {{"kernel", Integers{4}}});
  EXPECT_EQ(doubles(ties[1]), std::vector<double>{0});
  const auto with_nan = call_all("max_pool", {tensor({1, 1, 4}, {2, std::nan(""), 9, std::nan("")})},
                                 {{"kernel", Integers{4}}});
  EXPECT_TRUE(std::isnan(doubles(with_nan[0])[0]));
  EXPECT_EQ(doubles(with_nan[1]), std::vector<double>{1});
  const double low = -std::numeric_limits<double>::infinity();
  const auto lowest = call_all("max_pool", {tensor({1, 1, 2}, {low, low})}, {{"kernel", Integers{2}}});
  EXPECT_EQ(doubles(lowest[0]), std::vector<double>{low});
  EXPECT_EQ(doubles(lowest[1]), std::vector<double>{0});
}

TEST(Pool, AverageCountsPaddingOnlyIfAsked) {
  const auto x = tensor({1, 1, 4}, {2, 4, 6, 8});
  const Attributes window{{"kernel", Integers{2}}, {"strides", Integers{2}}, {"pads", Integers{1, 1}}};
  EXPECT_EQ(doubles(call("avg_pool", {x}, window)), (std::vector<double>{2, 5, 8}));
  Attributes counted = window;
  counted.set("count_include_pad", true);
  EXPECT_EQ(doubles(call("avg_pool", {x}, counted)), (std::vector<double>{1, 5, 4}));
}

TEST(Pool, APartialWindowDividesByWhatLiesWithinThePadding) {
  const auto x = tensor({1, 1, 4}, {2, 4, 6, 8});
  const Attributes window{{"kernel", Integers{3}}, {"strides", Integers{2}}, {"ceil_mode", true}};
  EXPECT_EQ(doubles(call("avg_pool", {x}, window)), (std::vector<double>{4, 7}));
  Attributes counted = window;
  counted.set("count_include_pad", true);
  EXPECT_EQ(doubles(call("avg_pool", {x}, counted)), (std::vector<double>{4, 7}))
      << "beyond the padding nothing counts";
}

TEST(Pool, GlobalPoolsReduceTheImage) {
  const auto x = counting({1, 2, 2, 2});
  EXPECT_EQ(doubles(call("global_avg_pool", {x})), (std::vector<double>{1.5, 5.5}));
  EXPECT_EQ(doubles(call("global_max_pool", {x})), (std::vector<double>{3, 7}));
  EXPECT_EQ(call("global_max_pool", {x}).shape(), (Extents{1, 2, 1, 1}));
}

}  // namespace
