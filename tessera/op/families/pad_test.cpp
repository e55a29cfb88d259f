#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Numbers = std::vector<double>;

/// 1, 2, 3 with this many elements before and after.
Numbers padded(std::int64_t before, std::int64_t after, const std::string& mode = "constant") {
  const std::vector<HostTensor> inputs{counting({3}, 1), tensor({}, {9})};
  const Attributes attributes{{"before", Shape{before}}, {"after", Shape{after}}, {"mode", mode}};
  const HostTensor out = call("pad", inputs, attributes);
  EXPECT_TRUE(same_bits(out, call_decomposed("pad", inputs, attributes)));
  return doubles(out);
}

TEST(Pad, FollowsItsMode) {
  EXPECT_EQ(padded(1, 2), (Numbers{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(padded(1, 2, "edge"), (Numbers{1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(padded(1, 2, "reflect"), (Numbers{2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(padded(1, 2, "wrap"), (Numbers{3, 1, 2, 3, 1, 2}));
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    EXPECT_EQ(padded(0, 0, mode), (Numbers{1, 2, 3})) << mode;
}

TEST(Pad, GoesOnPastTheOtherEnd) {
  EXPECT_EQ(padded(5, 0, "reflect"), (Numbers{2, 1, 2, 3, 2, 1, 2, 3}));
  EXPECT_EQ(padded(0, 7, "wrap"), (Numbers{1, 2, 3, 1, 2, 3, 1, 2, 3, 1}));
}

TEST(Pad, NegativeSizesCropFirst) {
  EXPECT_EQ(padded(-1, 1), (Numbers{2, 3, 9}));
  EXPECT_EQ(padded(2, -1, "reflect"), (Numbers{1, 2, 1, 2}));
  EXPECT_EQ(padded(-1, 2, "wrap"), (Numbers{2, 3, 2, 3}));
  EXPECT_EQ(padded(1, -2, "edge"), (Numbers{1, 1}));
  EXPECT_EQ(padded(-2, -1), Numbers{});
  EXPECT_EQ(padded(-3, 2), (Numbers{9, 9}));
}

TEST(Pad, OneElementAndNone) {
  const std::vector<HostTensor> one{tensor({1}, {4}), tensor({}, {0})},
      none{tensor({0}, {}), tensor({}, {5})};
  EXPECT_EQ(doubles(call("pad", one,
                         {{"before", Shape{2}}, {"after", Shape{1}}, {"mode", std::string("reflect")}})),
            (Numbers{4, 4, 4, 4}));
  EXPECT_EQ(doubles(call("pad", none, {{"before", Shape{2}}})), (Numbers{5, 5}));
  EXPECT_EQ(doubles(call("pad", {tensor({}, {3}), tensor({}, {0})})), Numbers{3});
}

TEST(Pad, SaysWhatDisagrees) {
  const auto pad = [](Shape x, Attributes attributes) {
    return inferred("pad", {{Dtype::f32, x}, {Dtype::f32, {}}}, attributes);
  };
  EXPECT_EQ(pad({2, 3}, {{"before", Shape{1}}}), "pad: 'before' has 1 entries, 'x' has rank 2");
  EXPECT_EQ(pad({2}, {{"after", Shape{1, 1}}}), "pad: 'after' has 2 entries, 'x' has rank 1");
  EXPECT_EQ(pad({3}, {{"before", Shape{-2}}, {"after", Shape{-2}}}),
            "pad: 'before' -2 and 'after' -2 crop more than axis 0 of 'x' has, which is 3");
  EXPECT_EQ(pad({2}, {{"mode", std::string("mirror")}}),
            "pad: 'mode' is \"mirror\", expected \"constant\", \"edge\", \"reflect\" or \"wrap\"");
  EXPECT_EQ(pad({0}, {{"before", Shape{1}}, {"mode", std::string("edge")}}),
            "pad: axis 0 of 'x' has no elements to pad with in mode \"edge\"");
  EXPECT_EQ(pad({3}, {{"before", Shape{-3}}, {"after", Shape{1}}, {"mode", std::string("wrap")}}),
            "pad: axis 0 of 'x' has no elements to pad with in mode \"wrap\"");
}

TEST(Pad, SizesThatOverflowAreRefused) {
  const auto pad = [](std::int64_t before, std::int64_t after) {
    return inferred("pad", {{Dtype::f32, {3}}, {Dtype::f32, {}}},
                    {{"before", Shape{before}}, {"after", Shape{after}}});
  };
  EXPECT_EQ(pad(highest_integer, 0),
            "pad: a result of shape [3 + 9223372036854775807] has a size that does not fit 64 bits");
  EXPECT_EQ(
      pad(highest_integer, highest_integer),
      "pad: a result of shape [3 + 9223372036854775807 + 9223372036854775807] has a size that does not fit "
      "64 bits");
  EXPECT_EQ(pad(lowest_integer, 0), "pad: the result would have shape [-9223372036854775805]");
  EXPECT_EQ(
      pad(lowest_integer, lowest_integer),
      "pad: a result of shape [-9223372036854775808 + -9223372036854775805] has a size that does not fit 64 "
      "bits");
}

}  // namespace
