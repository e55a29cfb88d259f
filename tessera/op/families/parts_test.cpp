#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

/// x[start:stop:step] of 0, 1, 2, 3, 4.
Numbers sliced(std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  return doubles(call("slice", {counting({5})},
                      {{"starts", Shape{start}}, {"stops", Shape{stop}}, {"steps", Integers{step}}}));
}

// ---- slice

TEST(Slice, TakesWhatIsThere) {
  EXPECT_EQ(sliced(1, 3), (Numbers{1, 2}));
  EXPECT_EQ(sliced(-2, 100), (Numbers{3, 4}));
  EXPECT_EQ(sliced(-100, 2), (Numbers{0, 1}));
  EXPECT_EQ(sliced(3, 1), Numbers{});
  EXPECT_EQ(sliced(5, 7), Numbers{});
  EXPECT_EQ(sliced(0, 5, 2), (Numbers{0, 2, 4}));
  EXPECT_EQ(sliced(1, 5, 3), (Numbers{1, 4}));
}

TEST(Slice, GoesDownWithNegativeSteps) {
  EXPECT_EQ(sliced(3, 0, -1), (Numbers{3, 2, 1}));
  EXPECT_EQ(sliced(-1, -100, -2), (Numbers{4, 2, 0}));
  EXPECT_EQ(sliced(100, 2, -1), (Numbers{4, 3}));
  EXPECT_EQ(sliced(1, 3, -1), Numbers{});
  EXPECT_EQ(sliced(0, 0, -1), Numbers{});
}

TEST(Slice, TakesTheEndsOf64BitsForTheEndsOfTheAxis) {
  EXPECT_EQ(sliced(lowest_integer, highest_integer), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(sliced(highest_integer, lowest_integer, -1), (Numbers{4, 3, 2, 1, 0}));
  EXPECT_EQ(sliced(highest_integer, highest_integer), Numbers{});
  EXPECT_EQ(sliced(lowest_integer, lowest_integer), Numbers{});
  EXPECT_EQ(sliced(2, highest_integer, highest_integer), Numbers{2});
  EXPECT_EQ(sliced(2, lowest_integer, lowest_integer), Numbers{2});
}

TEST(Slice, OfNothingIsNothing) {
  EXPECT_EQ(
      call("slice", {tensor({0, 3}, {})}, {{"starts", Shape{0}}, {"stops", Shape{highest_integer}}}).shape(),
      (Extents{0, 3}));
  EXPECT_EQ(doubles(call("slice", {tensor({}, {7})}, {{"starts", Shape{}}, {"stops", Shape{}}})), Numbers{7});
}

TEST(Slice, InfersSizesOfSymbols) {
  const Dim N = Dim(ir::size_symbol("N"));
  const auto slice = [&](Shape starts, Shape stops, Integers steps = {}) {
    return inferred("slice", {{Dtype::f32, {N, 4}}},
                    {{"starts", starts}, {"stops", stops}, {"steps", steps}});
  };
  EXPECT_EQ(slice({0}, {N}), "f32[N, 4]");
  EXPECT_EQ(slice({0, 1}, {highest_integer, 3}), "f32[N, 2]");
  EXPECT_EQ(slice({highest_integer}, {lowest_integer}, {-1}), "f32[N, 4]");
}

TEST(Slice, SaysWhatDisagrees) {
  const auto slice = [](Attributes attributes) {
    return inferred("slice", {{Dtype::f32, {2, 3}}}, attributes);
  };
  EXPECT_EQ(slice({{"starts", Shape{0}}, {"stops", Shape{1, 2}}}),
            "slice: 'starts' has 1 entries, 'stops' has 2");
  EXPECT_EQ(slice({{"starts", Shape{0, 0, 0}}, {"stops", Shape{1, 1, 1}}}),
            "slice: 'starts' has 3 entries, 'x' has rank 2");
  EXPECT_EQ(slice({{"starts", Shape{0}}, {"stops", Shape{1}}, {"axes", Integers{0, 1}}}),
            "slice: 'starts' has 1 entries, 'axes' has 2");
  EXPECT_EQ(slice({{"starts", Shape{0}}, {"stops", Shape{1}}, {"steps", Integers{1, 1}}}),
            "slice: 'starts' has 1 entries, 'steps' has 2");
  EXPECT_EQ(slice({{"starts", Shape{0, 0}}, {"stops", Shape{1, 1}}, {"steps", Integers{2, 0}}}),
            "slice: 'steps' [2, 0] has a 0");
  EXPECT_EQ(slice({{"starts", Shape{0, 0}}, {"stops", Shape{1, 1}}, {"axes", Integers{1, -1}}}),
            "slice: axis 1 is given twice in 'axes'");
  EXPECT_EQ(slice({{"starts", Shape{0}}, {"stops", Shape{1}}, {"axes", Integers{2}}}),
            "slice: axis in 'axes' 2 is outside [-2, 2) for a tensor of rank 2");
}

// ---- update_slice

Numbers updated(std::int64_t start, const Numbers& values, std::int64_t step = 1) {
  return doubles(call("update_slice", {counting({5}), tensor({std::int64_t(values.size())}, values)},
                      {{"starts", Shape{start}}, {"steps", Integers{step}}}));
}

TEST(UpdateSlice, ReplacesWhatItNames) {
  EXPECT_EQ(updated(1, {7, 8}), (Numbers{0, 7, 8, 3, 4}));
  EXPECT_EQ(updated(-2, {7, 8}), (Numbers{0, 1, 2, 7, 8}));
  EXPECT_EQ(updated(0, {7, 8, 9}, 2), (Numbers{7, 1, 8, 3, 9}));
  EXPECT_EQ(updated(4, {7, 8, 9}, -2), (Numbers{9, 1, 8, 3, 7}));
  EXPECT_EQ(updated(2, {7}, highest_integer), (Numbers{0, 1, 7, 3, 4}));
  EXPECT_EQ(updated(2, {7}, lowest_integer), (Numbers{0, 1, 7, 3, 4}));
  EXPECT_EQ(updated(highest_integer, {}), (Numbers{0, 1, 2, 3, 4}));
}

TEST(UpdateSlice, IsInsideOrRefused) {
  const auto update = [](Shape x, Shape new_part, Attributes attributes) {
    return inferred("update_slice", {{Dtype::f32, x}, {Dtype::f32, new_part}}, attributes);
  };
  EXPECT_EQ(
      update({5}, {2}, {{"starts", Shape{4}}}),
      "update_slice: 'update' of size 2 from 4 in steps of 1 is not inside axis 0 of 'x', which has size 5");
  EXPECT_EQ(
      update({5}, {2}, {{"starts", Shape{-6}}}),
      "update_slice: 'update' of size 2 from -6 in steps of 1 is not inside axis 0 of 'x', which has size "
      "5");
  EXPECT_EQ(
      update({5}, {3}, {{"starts", Shape{1}}, {"steps", Integers{-1}}}),
      "update_slice: 'update' of size 3 from 1 in steps of -1 is not inside axis 0 of 'x', which has size "
      "5");
  EXPECT_EQ(update({5}, {3}, {{"starts", Shape{0}}, {"steps", Integers{highest_integer}}}),
            "update_slice: 'update' of size 3 from 0 in steps of 9223372036854775807 is not inside axis 0 of "
            "'x', which has size 5");
  EXPECT_EQ(update({5, 2}, {2}, {{"starts", Shape{0}}}), "update_slice: 'x' has rank 2, 'update' has rank 1");
  EXPECT_EQ(update({5, 2}, {2, 3}, {{"starts", Shape{0}}}),
            "update_slice: axis 1 of 'x' and 'update': 2 and 3 do not agree");
}

// ---- concat, split

TEST(Concat, JoinsAlongAnAxis) {
  const HostTensor a = tensor({2, 1}, {1, 2}), b = tensor({2, 2}, {3, 4, 5, 6}), none = tensor({2, 0}, {});
  EXPECT_EQ(doubles(call("concat", {a, b}, {{"axis", 1}})), (Numbers{1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(doubles(call("concat", {a, none, a}, {{"axis", -1}})), (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(doubles(call("concat", {b, b})), (Numbers{3, 4, 5, 6, 3, 4, 5, 6}));
  EXPECT_EQ(call("concat", {none, none}, {{"axis", 0}}).shape(), (Extents{4, 0}));
}

TEST(Concat, SaysWhatDisagrees) {
  const auto concat = [](std::vector<Shape> shapes, std::int64_t axis) {
    ValueTypes types;
    for (const Shape& shape : shapes) types.push_back({Dtype::f32, shape});
    return inferred("concat", types, {{"axis", axis}});
  };
  EXPECT_EQ(concat({{2, 3}, {2, 4}}, 0),
            "concat: axis 1 of 'inputs[0]' and 'inputs[1]': 3 and 4 do not agree");
  EXPECT_EQ(concat({{2, 3}, {2, 3}, {2}}, 0), "concat: 'inputs[0]' has rank 2, 'inputs[2]' has rank 1");
  EXPECT_EQ(concat({{2}, {2}}, 1), "concat: axis 1 is outside [-1, 1) for a tensor of rank 1");
  EXPECT_EQ(concat({{}, {}}, 0), "concat: axis 0 is outside [0, 0) for a tensor of rank 0");
  EXPECT_EQ(concat({}, 0), "concat: takes at least 1 inputs, got 0");
  EXPECT_EQ(inferred("concat", {{Dtype::f32, {2}}, {Dtype::f64, {2}}}),
            "concat: inputs 'inputs[0]' and 'inputs[1]' have different dtypes: f32 and f64");
  EXPECT_EQ(
      concat({{highest_integer}, {highest_integer}}, 0),
      "concat: a result of shape [9223372036854775807 + 9223372036854775807] has a size that does not fit "
      "64 bits");
}

TEST(Split, GivesPartsThatMakeTheWhole) {
  const HostTensor x = counting({2, 4});
  const auto parts = call_all("split", {x}, {{"sizes", Shape{1, 0, 3}}, {"axis", -1}});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(doubles(parts[0]), (Numbers{0, 4}));
  EXPECT_EQ(parts[1].shape(), (Extents{2, 0}));
  EXPECT_EQ(doubles(parts[2]), (Numbers{1, 2, 3, 5, 6, 7}));
  EXPECT_TRUE(same_bits(call("concat", parts, {{"axis", 1}}), x));
}

TEST(Split, SaysWhatDisagrees) {
  const auto split = [](Shape x, Attributes attributes) {
    return inferred("split", {{Dtype::f32, x}}, attributes);
  };
  EXPECT_EQ(split({2, 4}, {{"sizes", Shape{1, 2}}, {"axis", 1}}),
            "split: 'sizes' [1, 2] make 3, axis 1 of 'x' has size 4");
  EXPECT_EQ(split({2}, {{"sizes", Shape{}}}), "split: 'sizes' is empty");
  EXPECT_EQ(split({2}, {{"sizes", Shape{3, -1}}}), "split: the result would have shape [-1]");
  EXPECT_EQ(split({2}, {{"sizes", Shape{2}}, {"axis", 1}}),
            "split: axis 1 is outside [-1, 1) for a tensor of rank 1");
  EXPECT_EQ(split({2}, {}), "split: needs the attribute 'sizes'");
}

// ---- slice_at, update_slice_at

TEST(SliceAt, InfersSizesOfSymbols) {
  const Dim N = Dim(ir::size_symbol("N")), M = Dim(ir::size_symbol("M"));
  const ValueType position{Dtype::i64, {}};
  EXPECT_EQ(inferred("slice_at", {{Dtype::f32, {N, 4}}, position}, {{"sizes", Shape{2}}}), "f32[2, 4]");
  EXPECT_EQ(inferred("slice_at", {{Dtype::f32, {N, 4}}, position}, {{"sizes", Shape{M}}}), "f32[M, 4]");
  EXPECT_EQ(inferred("update_slice_at", {{Dtype::f32, {N, 4}}, {Dtype::f32, {M, 4}}, position}, {}),
            "f32[N, 4]");
}

TEST(SliceAt, SaysWhatDoesNotFit) {
  const ValueType position{Dtype::i64, {}}, x{Dtype::f32, {4, 3}};
  EXPECT_EQ(inferred("slice_at", {x, position}, {{"sizes", Shape{3}}, {"steps", Integers{2}}}),
            "slice_at: a part of size 3 in steps of 2 does not fit into axis 0 of 'x', which has size 4");
  EXPECT_EQ(inferred("slice_at", {x, position}, {{"sizes", Shape{-1}}}),
            "slice_at: the part of axis 0 has the negative size -1");
  EXPECT_EQ(inferred("update_slice_at", {x, {Dtype::f32, {2}}, position}, {}),
            "update_slice_at: 'x' has rank 2, 'update' has rank 1");
  EXPECT_EQ(inferred("update_slice_at", {x, x, {Dtype::i64, {1}}}, {}),
            "update_slice_at: 'positions[0]' must be a scalar, got i64[1]");
}

}  // namespace
