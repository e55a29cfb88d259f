#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
TEST(Softmax, ComputesKnownValues) {
  const auto x = tensor({2, 2}, {0, std::log(3), std::log(4), 0});
  expect_near(call("softmax", {x}), {0.25, 0.75, 0.8, 0.2});
  expect_near(call("softmax", {x}, {{"axis", 0}}), {0.2, 0.75, 0.8, 0.25});
  expect_near(call("log_softmax", {x}), {std::log(0.25), std::log(0.75), std::log(0.8), std::log(0.2)});
}

TEST(Softmax, DoesNotOverflow) {
  const auto large = tensor({3}, {60000, 60000, -infinity}, Dtype::f16);
  EXPECT_EQ(doubles(call("softmax", {large})), (std::vector<double>{0.5, 0.5, 0}));
  EXPECT_EQ(doubles(call_decomposed("softmax", {large})), (std::vector<double>{0.5, 0.5, 0}));
  const auto far = tensor({2}, {1e300, 0});
  EXPECT_EQ(doubles(call("log_softmax", {far})), (std::vector<double>{0, -1e300}));
}

TEST(Softmax, OfAnEmptyAxisIsEmpty) {
  EXPECT_EQ(call("softmax", {tensor({2, 0}, {})}).shape(), (Extents{2, 0}));
  EXPECT_EQ(call_decomposed("softmax", {tensor({2, 0}, {})}).shape(), (Extents{2, 0}));
}

TEST(Softmax, SaysWhichAxisIsWrong) {
  const Dim N = Dim(ir::size_symbol("N"));
  EXPECT_EQ(inferred("softmax", {{Dtype::f32, {N, 3}}}, {{"axis", 2}}),
            "softmax: axis 2 is outside [-2, 2) for a tensor of rank 2");
  EXPECT_EQ(inferred("log_softmax", {{Dtype::i64, {3}}}),
            "log_softmax: input 'x' has dtype i64, expected one of f64 f32 f16 bf16");
}

std::string loss_type(Shape logits, Shape targets, Attributes attributes = {}) {
  return inferred("cross_entropy", {{Dtype::f32, logits}, {Dtype::i64, targets}}, attributes);
}

TEST(CrossEntropy, InfersShapes) {
  const Dim N = Dim(ir::size_symbol("N")), M = Dim(ir::size_symbol("M"));
  EXPECT_EQ(loss_type({N, 10}, {N}), "f32[]");
  EXPECT_EQ(loss_type({N, 10, M}, {N, M}, {{"reduction", std::string("none")}}), "f32[N, M]");
  EXPECT_EQ(loss_type({10}, {}, {{"reduction", std::string("none")}}), "f32[]");
}

TEST(CrossEntropy, SaysWhatDisagrees) {
  EXPECT_EQ(loss_type({4, 10}, {5}),
            "cross_entropy: axis 0 of 'logits' (f32[4, 10]) and axis 0 of 'targets' (i64[5]): 4 and 5 do not "
            "agree");
  EXPECT_EQ(
      loss_type({4, 10, 6}, {4, 7}),
      "cross_entropy: axis 2 of 'logits' (f32[4, 10, 6]) and axis 1 of 'targets' (i64[4, 7]): 6 and 7 do "
      "not agree");
  EXPECT_EQ(loss_type({4, 10}, {4, 10}),
            "cross_entropy: 'targets' (i64[4, 10]) has rank 2, expected 1: the axes of 'logits' (f32[4, 10]) "
            "without axis 1");
  EXPECT_EQ(loss_type({}, {}), "cross_entropy: 'logits' (f32[]) has rank 0, expected an axis of classes");
  EXPECT_EQ(loss_type({4, 10}, {4}, {{"reduction", std::string("avg")}}),
            "cross_entropy: 'reduction' is \"avg\", expected \"mean\", \"sum\" or \"none\"");
  EXPECT_EQ(inferred("cross_entropy", {{Dtype::f32, {4, 10}}, {Dtype::i64, {4}}, {Dtype::f32, {9}}}),
            "cross_entropy: axis 1 of 'logits' (f32[4, 10]) and 'weight' (f32[9]): 10 and 9 do not agree");
}

HostTensor targets(std::vector<double> values) {
  return tensor({static_cast<std::int64_t>(values.size())}, values, Dtype::i64);
}

TEST(CrossEntropy, ReducesByWeights) {
  const double a = std::log(4), b = std::log(5);
  const auto x = tensor({2, 2}, {0, std::log(3), std::log(4), 0});  // -log softmax: a at 0; b at 1
  const auto weights = tensor({2}, {1, 3});
  const auto loss = [&](std::vector<double> classes, const char* reduction) {
    return call("cross_entropy", {x, targets(std::move(classes)), weights},
                {{"reduction", std::string(reduction)}, {"ignore_index", 7}});
  };
  expect_near(loss({0, 1}, "none"), {a, 3 * b});
  expect_near(loss({0, 1}, "sum"), {a + 3 * b});
  expect_near(loss({0, 1}, "mean"), {(a + 3 * b) / 4});
  expect_near(loss({7, 1}, "mean"), {b});
  expect_near(loss({7, 1}, "none"), {0, 3 * b});
  EXPECT_TRUE(std::isnan(doubles(loss({7, 7}, "mean"))[0])) << "the mean of nothing";
}

TEST(CrossEntropy, RefusesClassesThatAreNotThere) {
  const auto x = counting({3, 4});
  for (double wrong : {4.0, -1.0}) {
    const auto y = targets({0, wrong, 2});
    EXPECT_THROW(call_decomposed("cross_entropy", {x, y}), std::exception) << wrong;
    try {
      call("cross_entropy", {x, y});
      FAIL() << wrong;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what())
                    .find(cat("cross_entropy: 'targets' has ", static_cast<std::int64_t>(wrong),
                              " as element 1, expected a class from 0 to 3 or -100 to ignore it")),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(CrossEntropy, AnIgnoredLossMayBeInfinite) {
  const auto x = tensor({2, 2}, {-infinity, 0, 0, 0});
  const Attributes ignoring{{"ignore_index", 0}};
  expect_near(call("cross_entropy", {x, targets({0, 1})}, ignoring), {std::log(2)});
  expect_near(call_decomposed("cross_entropy", {x, targets({0, 1})}, ignoring), {std::log(2)});
}

}  // namespace
