#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> indices_of(const std::vector<HostTensor>& results) {
  const auto values = results[1].values<std::int64_t>();
  return {values.begin(), values.end()};
}
using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

TEST(Sort, IsStableInBothDirections) {
  const HostTensor x = tensor({6}, {2, 1, 2, 0, 1, 2});
  const auto up = call_all("sort", {x}), down = call_all("sort", {x}, {{"descending", true}});
  EXPECT_EQ(doubles(up[0]), (Numbers{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(indices_of(up), (Integers{3, 1, 4, 0, 2, 5}));
  EXPECT_EQ(doubles(down[0]), (Numbers{2, 2, 2, 1, 1, 0}));
  EXPECT_EQ(indices_of(down), (Integers{0, 2, 5, 1, 4, 3}));
}

TEST(Sort, NanIsGreaterThanEveryNumber) {
  const HostTensor x = tensor({6}, {nan, inf, 1, nan, -inf, 0});
  EXPECT_EQ(indices_of(call_all("sort", {x})), (Integers{4, 5, 2, 1, 0, 3}));
  EXPECT_EQ(indices_of(call_all("sort", {x}, {{"descending", true}})), (Integers{0, 3, 1, 2, 5, 4}));
  EXPECT_EQ(indices_of(call_all("topk", {x}, {{"k", 3}})), (Integers{0, 3, 1}));
}

TEST(Sort, ZerosOfBothSignsAreEqualAndKeepTheirSigns) {
  const auto results = call_all("sort", {tensor({3}, {0.0, -0.0, -1})});
  EXPECT_EQ(indices_of(results), (Integers{2, 0, 1}));
  EXPECT_FALSE(std::signbit(results[0].values<double>()[1]));
  EXPECT_TRUE(std::signbit(results[0].values<double>()[2]));
}

TEST(Sort, ReadsTheWholeRangeOfIntegers) {
  const std::vector<std::int64_t> values{highest_integer, 0, lowest_integer, highest_integer - 1,
                                         lowest_integer + 1};
  EXPECT_EQ(indices_of(call_all("sort", {HostTensor::of<std::int64_t>(Dtype::i64, {5}, values)})),
            (Integers{2, 4, 1, 3, 0}));
  // As unsigned numbers the negative ones are the greatest.
  const std::vector<std::uint64_t> bits(values.begin(), values.end());
  EXPECT_EQ(indices_of(call_all("sort", {HostTensor::of<std::uint64_t>(Dtype::u64, {5}, bits)})),
            (Integers{1, 3, 0, 2, 4}));
}

TEST(Sort, GoesAlongAnyAxis) {
  const HostTensor x = tensor({2, 3}, {5, 1, 3, 2, 4, 0});
  EXPECT_EQ(doubles(call("sort", {x}, {{"axis", 0}})), (Numbers{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(doubles(call("sort", {x}, {{"axis", -1}})), (Numbers{1, 3, 5, 0, 2, 4}));
  EXPECT_EQ(call("sort", {tensor({2, 0}, {})}).size(), 0);
  EXPECT_EQ(call("sort", {tensor({0, 2}, {})}).size(), 0);
}

TEST(Sort, SaysWhatIsWrong) {
  EXPECT_EQ(inferred("sort", {{Dtype::f32, {2, 3}}}, {{"axis", 2}}),
            "sort: axis 2 is outside [-2, 2) for a tensor of rank 2");
  EXPECT_EQ(inferred("sort", {{Dtype::f32, {}}}), "sort: axis -1 is outside [0, 0) for a tensor of rank 0");
  EXPECT_EQ(inferred("sort", {{Dtype::f32, {2}}}, {{"stable", true}}), "sort: has no attribute 'stable'");
}

TEST(Topk, TakesTheFirstOfTheOrder) {
  const HostTensor x = tensor({2, 4}, {3, 1, 3, 2, 0, 9, 8, 9});
  const auto largest = call_all("topk", {x}, {{"k", 2}});
  EXPECT_EQ(doubles(largest[0]), (Numbers{3, 3, 9, 9}));
  EXPECT_EQ(indices_of(largest), (Integers{0, 2, 1, 3}));
  const auto smallest = call_all("topk", {x}, {{"k", 1}, {"axis", 0}, {"largest", false}});
  EXPECT_EQ(doubles(smallest[0]), (Numbers{0, 1, 3, 2}));
  EXPECT_EQ(indices_of(smallest), (Integers{1, 0, 0, 0}));
}

TEST(Topk, NotSortedKeepsTheOrderOfTheElements) {
  const HostTensor x = tensor({5}, {1, 5, 0, 9, 7});
  const auto results = call_all("topk", {x}, {{"k", 3}, {"sorted", false}});
  EXPECT_EQ(doubles(results[0]), (Numbers{5, 9, 7}));
  EXPECT_EQ(indices_of(results), (Integers{1, 3, 4}));
}

TEST(Topk, TakesNoneAndAll) {
  const HostTensor x = tensor({2, 3}, {1, 2, 3, 6, 5, 4});
  EXPECT_EQ(call("topk", {x}, {{"k", 0}}).shape(), (Extents{2, 0}));
  EXPECT_TRUE(same_bits(call("topk", {x}, {{"k", 3}}), call("sort", {x}, {{"descending", true}})));
  EXPECT_EQ(call("topk", {tensor({0, 3}, {})}, {{"k", 2}}).shape(), (Extents{0, 2}));
}

TEST(Topk, SaysWhatDisagrees) {
  const auto topk = [](Shape x, Attributes attributes) {
    return inferred("topk", {{Dtype::f32, std::move(x)}}, attributes);
  };
  const Dim N = Dim(ir::size_symbol("N"));
  EXPECT_EQ(topk({2, 3}, {{"k", 2}}), "f32[2, 2] i64[2, 2]");
  EXPECT_EQ(topk({N, 3}, {{"k", Shape{N}}, {"axis", 0}}), "f32[N, 3] i64[N, 3]");
  EXPECT_EQ(topk({2, 3}, {{"k", 4}}), "topk: 'k' is 4, axis 1 of 'x' has size 3");
  EXPECT_EQ(topk({N, 3}, {{"k", Shape{N + 1}}, {"axis", 0}}), "topk: 'k' is N + 1, axis 0 of 'x' has size N");
  EXPECT_EQ(topk({2, 3}, {{"k", -1}}), "topk: 'k' is -1, at least 0 is needed");
  EXPECT_EQ(topk({2, 3}, {{"k", std::numeric_limits<std::int64_t>::max()}}),
            "topk: 'k' is 9223372036854775807, axis 1 of 'x' has size 3");
  EXPECT_EQ(topk({2, 3}, {{"k", std::numeric_limits<std::int64_t>::min()}}),
            "topk: 'k' is -9223372036854775808, at least 0 is needed");
  EXPECT_EQ(topk({2, 3}, {{"k", 1}, {"axis", -3}}),
            "topk: axis -3 is outside [-2, 2) for a tensor of rank 2");
  EXPECT_EQ(topk({2, 3}, {}), "topk: needs the attribute 'k'");
}

}  // namespace
