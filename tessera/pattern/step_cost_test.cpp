#include "tessera/pattern/step_cost.h"

#include <gtest/gtest.h>

#include "tessera/pattern/graph_builder.h"
#include "tests/support/op_facts.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

TEST(StepPrices, CountWhatIsReadFromOutsideAndWhatEscapesOnce) {
  GraphBuilder builder(op::op_facts());
  const ir::Dim rows(Ref<ir::Var>(ir::variable("N", ir::scalar_type(ir::Dtype::i64))));
  const ValueType matrix{ir::Dtype::f32, builder.shape({rows, ir::Dim(10)})};
  const ValueType bytes{ir::Dtype::i8, builder.shape({ir::Dim(100)})};
  const ValueId x = builder.input("x"), y = builder.input("y");
  builder.set_type(x, matrix);
  builder.set_type(y, bytes);
  const ValueId a = builder.add("add", {x, x}, {}, matrix);
  const ValueId b = builder.add("add", {a, y}, {}, matrix);
  const ValueId c = builder.add("add", {a, x}, {}, matrix);
  builder.set_output(b);
  builder.set_output(c);
  const Graph graph = value_or_throw(std::move(builder).build());
  StepPrices prices({.step_ns = 1000, .byte_ns = 1}, graph);
  constexpr double whole = 64 * 10 * 4, few = 100;
  const NodeId one = graph.producer(a), two = graph.producer(b), three = graph.producer(c);
  const auto price = [&](std::vector<NodeId> nodes) { return prices.of(nodes); };
  EXPECT_EQ(price({one}), 1000 + 2 * whole) << "x once, a";
  EXPECT_EQ(price({two}), 1000 + 2 * whole + few) << "a, y, b";
  EXPECT_EQ(price({one, two}), 1000 + 3 * whole + few) << "x, y, b, and a, which the third reads";
  EXPECT_EQ(price({one, two, three}), 1000 + 3 * whole + few) << "x, y, b, c";
  EXPECT_EQ(price({one}), 1000 + 2 * whole) << "whatever was asked before";
}

TEST(StepPrices, CountTheLongerOfMovingAndComputingAndAQuarterOfTheOther) {
  GraphBuilder builder(op::op_facts());
  const ValueType type{ir::Dtype::f32, builder.shape({ir::Dim(100)})};
  const auto add = [&](ValueId input, double operations) {
    const NodeId node = builder.add_node({.op = "f", .results = {type}, .operations = operations});
    builder.set_inputs(node, {input});
    return builder.result(node);
  };
  const ValueId x = builder.input("x");
  builder.set_type(x, type);
  const ValueId light = add(x, 100), heavy = add(light, 2000);
  builder.set_output(heavy);
  const Graph graph = value_or_throw(std::move(builder).build());
  StepPrices prices({.step_ns = 10, .byte_ns = 1, .operation_ns = 1}, graph);
  const NodeId one = graph.producer(light), two = graph.producer(heavy);
  const auto price = [&](std::vector<NodeId> nodes) { return prices.of(nodes); };
  EXPECT_EQ(price({one}), 10 + 800 + 100 / 4.0) << "memory takes longer";
  EXPECT_EQ(price({two}), 10 + 2000 + 800 / 4.0) << "arithmetic takes longer";
  EXPECT_EQ(price({one, two}), 10 + 2100 + 800 / 4.0);
  const StepPrice parts = prices.parts_of(std::vector<NodeId>{one, two});
  EXPECT_EQ(parts.begin, 10);
  EXPECT_EQ(parts.moving, 800);
  EXPECT_EQ(parts.computing, 2100);
}

}  // namespace
