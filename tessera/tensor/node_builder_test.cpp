#include "tessera/tensor/node_builder.h"

#include <gtest/gtest.h>

#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using detail::NodeBuilder;
using engine::NodeRef;
using op::Value;

namespace {

int inferred = 0;

Result<op::ValueTypes> counted_type(const op::CallInfo& call) {
  ++inferred;
  return op::ValueTypes{call.input(0)};
}

/// An op whose type rule counts its calls.
const op::Card& counted_card() {
  static constexpr op::Input inputs[] = {{"x", "T", op::InputKind::tensor},
                                         {"a", "T", op::InputKind::scalar}};
  static constexpr op::Card card{
      .name = "counted", .summary = "for this test", .inputs = inputs, .infer = counted_type};
  return card;
}

/// The node of a call of it on `x` and a number.
NodeRef call_counted(const Tensor& x, double number) {
  NodeBuilder builder(x.engine());
  const Value inputs[] = {builder.import(NodeRef::share(x.node())), builder.constant(number, x.dtype())};
  const Value y = builder.call(counted_card(), inputs);
  EXPECT_TRUE(builder.status());
  return builder.node(y);
}

TEST(NodeBuilder, what_was_recorded_before_is_not_inferred_again) {
  const Tensor x = zeros({2, 3});
  const NodeRef first = call_counted(x, 0.5);
  const int once = std::exchange(inferred, 0);
  EXPECT_GT(once, 0);
  const NodeRef again = call_counted(x, 0.7);
  EXPECT_EQ(inferred, 0);
  EXPECT_EQ(again->type(), first->type());
  EXPECT_EQ(again->scalar.as_float(), 0.7);
}

TEST(NodeBuilder, other_types_are_inferred) {
  (void)call_counted(zeros({2, 3}), 0.5);
  inferred = 0;
  EXPECT_EQ(call_counted(zeros({3, 2}), 0.5)->type(), (op::ValueType{f32, {3, 2}}));
  EXPECT_GT(std::exchange(inferred, 0), 0);
  EXPECT_EQ(call_counted(zeros({2, 3}, {.dtype = f64}), 0.5)->type(), (op::ValueType{f64, {2, 3}}));
  EXPECT_GT(inferred, 0);
}

/// As many as a training step has.
TEST(NodeBuilder, some_hundred_calls_are_known) {
  std::vector<Tensor> all;
  for (std::int64_t i = 1; i <= 400; ++i) all.push_back(zeros({i, 3}));
  for (const Tensor& x : all) (void)call_counted(x, 0.5);
  inferred = 0;
  for (const Tensor& x : all) (void)call_counted(x, 0.5);
  EXPECT_LT(inferred, 80) << "of 800: a type is inferred by the builder and by the recorder";
}

TEST(NodeBuilder, numbers_alone_keep_their_dtype) {
  for (const Dtype dtype : {f32, f64, f16}) {
    NodeBuilder builder(zeros({1}).engine());
    const Value sum = builder.constant(1, dtype) + builder.constant(2, dtype);
    EXPECT_EQ(builder.node(sum)->type(), (op::ValueType{dtype, {}}));
  }
}

TEST(NodeBuilder, gradients_of_several_dtypes_in_turn_are_of_their_own) {
  for (int round = 0; round < 2; ++round)
    for (const Dtype dtype : {f32, f64}) {
      const Tensor x = full({2}, 3, {.dtype = dtype});
      const Tensor slope = grad([](const Tensor& v) { return sum(v * v * 0.5); })(x);
      EXPECT_EQ(slope.dtype(), dtype);
      EXPECT_EQ(slope.cast(f64).to_vector<double>(), (std::vector<double>{3, 3}));
    }
}

}  // namespace
