#include "tessera/stream/op_table.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

const ir::TypeRef small = ir::tensor_type(ir::Dtype::f32, ir::Shape(1, ir::Dim(2)));
const ir::TypeRef same = ir::tensor_type(ir::Dtype::f32, ir::Shape(1, ir::Dim(2)));
const ir::TypeRef large = ir::tensor_type(ir::Dtype::f32, ir::Shape(1, ir::Dim(3)));

TEST(OpTable, EqualContentHasOneNumber) {
  OpTable table(100);
  const Input one[] = {Input::of(1, small)}, two[] = {Input::of(2, same)}, other[] = {Input::of(1, large)};
  const Output output{.value = 3};
  const auto number = [&](std::string_view op, std::span<const Input> inputs) {
    return table.intern({.op = op, .inputs = inputs, .outputs = {&output, 1}}).id;
  };
  EXPECT_EQ(number("relu", one), number("relu", two)) << "ids and the identity of types do not count";
  EXPECT_NE(number("relu", one), number("exp", one));
  EXPECT_NE(number("relu", one), number("relu", other));
  const Input parameter[] = {Input::parameter()}, typed[] = {Input::parameter(ir::Dtype::f32)};
  EXPECT_NE(number("relu", parameter), number("relu", typed));
  const ir::Attributes axis{{"axis", std::int64_t{0}}};
  EXPECT_NE(table.intern({.op = "f", .attributes = &axis}).id, table.intern({.op = "f"}).id);
  EXPECT_NE(table.intern({.op = "f", .effect = Effect::read}).id, table.intern({.op = "f"}).id);
}

TEST(OpTable, SaysWhatIsOverwritten) {
  OpTable table(100);
  const Input input[] = {Input::of(1)};
  const Output again{.value = 1}, fresh{.value = 2};
  const auto op = [&](std::string_view name, Effect effect, const Output& output) {
    return table.intern({.op = name, .effect = effect, .inputs = input, .outputs = {&output, 1}});
  };
  EXPECT_TRUE(op("f", Effect::write, fresh).overwrites_input);
  EXPECT_FALSE(op("f", Effect::write, again).overwrites_input) << "the output is the new version";
  EXPECT_FALSE(op("f", Effect::none, again).overwrites_input);
  EXPECT_EQ(op("f", Effect::none, again).id, op("f", Effect::none, fresh).id);
}

TEST(OpTable, ForgetsAllButWhatIsUsed) {
  OpTable table(10);
  const OpId kept = table.intern({.op = "kept"}).id;
  for (int i = 0; i < 1000; ++i) {
    if (table.is_full()) table.shrink([&](OpId id) { return id == kept; });
    const std::string name = cat("op", i);
    (void)table.intern({.op = name});
    ASSERT_LE(table.size(), 12u);
  }
  EXPECT_EQ(table.intern({.op = "kept"}).id, kept);
  EXPECT_NE(table.find(kept), nullptr);
  EXPECT_EQ(table.find(kept + 1), nullptr);
}

}  // namespace
