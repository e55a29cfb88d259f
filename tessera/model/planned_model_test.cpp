// Models as plans where sizes depend on data: against the run node by node.
#include "tessera/model/planned_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/engine/devices.h"
#include "tests/support/onnx_file.h"

using namespace tessera;
using namespace tessera::fixture;
using op::HostTensor;

namespace {

onnx::DataValue vector_of(const std::vector<float>& elements) {
  const auto size = static_cast<std::int64_t>(elements.size());
  return {onnx::DataValue::Kind::tensor,
          {HostTensor::of<float>(op::Dtype::f32, {size}, std::span<const float>(elements))}};
}

/// Some of the elements are 0.
std::vector<float> elements_of(std::int64_t size, std::int64_t each) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < size; ++i)
    out.push_back(each != 0 && i % each == 0 ? static_cast<float>(i + 1) : 0);
  return out;
}

void expect_as_node_by_node(const OnnxFile& file, const std::string& name, std::size_t parts) {
  const onnx::Model model = value_or_throw(onnx::read_model(file.write(name)));
  for (const char* device_name : {"reference", "cpu"}) {
    const auto device = value_or_throw(engine::find_device(device_name));
    auto planned = PlannedModel::create(model, *device);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(value_or_throw(planned->program())->parts.size(), parts);
    for (const std::int64_t size : {4, 1, 9})
      for (const std::int64_t each : {0, 1, 2}) {
        const onnx::DataValue inputs[] = {vector_of(elements_of(size, each))};
        const auto expected = value_or_throw(onnx::run(model, inputs, {}))[0].tensors[0];
        const auto run = planned->run(inputs);
        ASSERT_TRUE(run) << run.error().to_text();
        const HostTensor& got = (*run)[0].tensors[0];
        ASSERT_EQ(expected.shape(), got.shape());
        EXPECT_EQ(std::memcmp(expected.array().data, got.array().data, got.byte_size()), 0);
      }
  }
}

}  // namespace

TEST(PlannedModel, NonZeroCutsTheProgram) {
  OnnxFile file;
  file.nodes = {onnx_node("NonZero", {"x"}, {"places"}),
                onnx_node("Cast", {"places"}, {"y"}, "cast", {onnx_attribute("to", 1)})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"1", "M"})};
  expect_as_node_by_node(file, "planned_non_zero.onnx", 2);
}

TEST(PlannedModel, CompressKeepsWhatAConditionSays) {
  OnnxFile file;
  file.nodes = {onnx_node("Cast", {"x"}, {"is_kept"}, "cast", {onnx_attribute("to", 9)}),
                onnx_node("Compress", {"x", "is_kept"}, {"kept"}), onnx_node("Relu", {"kept"}, {"y"})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"M"})};
  expect_as_node_by_node(file, "planned_compress.onnx", 2);
}

TEST(PlannedModel, SlicesEndWhereTheProgramSays) {
  OnnxFile file;
  file.nodes = {onnx_node("ReduceMax", {"x"}, {"most"}, "max", {onnx_attribute("keepdims", 0)}),
                onnx_node("Cast", {"most"}, {"end"}, "cast", {onnx_attribute("to", 7)}),
                onnx_node("Sub", {"end", "two"}, {"stop"}),
                onnx_node("Reshape", {"stop", "one"}, {"stops"}),
                onnx_node("Cast", {"zero"}, {"starts"}, "cast", {onnx_attribute("to", 7)}),
                onnx_node("Slice", {"x", "starts", "stops"}, {"y"})};
  file.tensors = {onnx_tensor("zero", {1}, {0})};
  file.nodes.insert(file.nodes.begin(),
                    onnx_node("Cast", {"one_f"}, {"one"}, "c1", {onnx_attribute("to", 7)}));
  file.nodes.insert(file.nodes.begin(),
                    onnx_node("Cast", {"two_f"}, {"two"}, "c2", {onnx_attribute("to", 7)}));
  file.tensors.push_back(onnx_tensor("one_f", {1}, {1}));
  file.tensors.push_back(onnx_tensor("two_f", {}, {2}));
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"M"})};
  expect_as_node_by_node(file, "planned_slice.onnx", 2);  // also negative: from the end
}

namespace {

/// Which branch is taken is said by the data: w·x, or relu(x - w).
OnnxFile branch_on_data() {
  OnnxFile then, otherwise, file;
  then.nodes = {onnx_node("Mul", {"x", "w"}, {"a"})};
  then.outputs = {onnx_value("a", {"N"})};
  otherwise.nodes = {onnx_node("Sub", {"x", "w"}, {"m"}), onnx_node("Relu", {"m"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"N"})};
  file.nodes = {onnx_node("ReduceSum", {"x"}, {"total"}, "", {onnx_attribute("keepdims", 0)}),
                onnx_node("Greater", {"total", "zero"}, {"is_positive"}),
                onnx_node("If", {"is_positive"}, {"y"}, "choose",
                          {onnx_graph_attribute("then_branch", then.graph()),
                           onnx_graph_attribute("else_branch", otherwise.graph())})};
  file.tensors = {onnx_tensor("w", {1}, {3}), onnx_tensor("zero", {}, {0})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"N"})};
  return file;
}

constexpr std::int64_t onnx_bool = 9;

onnx::DataValue flag_of(bool value) {
  HostTensor out = value_or_throw(HostTensor::allocate(op::Dtype::boolean, {1}));
  *out.array().data = std::byte{value};
  return {onnx::DataValue::Kind::tensor, {out}};
}

/// By the flag `cached` the result has the elements of `past` before its own, or not.
OnnxFile decoder() {
  OnnxFile then, otherwise, file;
  then.nodes = {onnx_node("Concat", {"past", "x"}, {"a"}, "join", {onnx_attribute("axis", 0)})};
  then.outputs = {onnx_value("a", {"M"})};
  otherwise.nodes = {onnx_node("Neg", {"x"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"K"})};
  file.nodes = {onnx_node("If", {"cached"}, {"chosen"}, "if",
                          {onnx_graph_attribute("then_branch", then.graph()),
                           onnx_graph_attribute("else_branch", otherwise.graph())}),
                onnx_node("Relu", {"chosen"}, {"y"})};
  file.inputs = {onnx_value("x", {"N"}), onnx_value("cached", {"1"}, onnx_bool), onnx_value("past", {"P"})};
  file.outputs = {onnx_value("y", {"Q"})};
  return file;
}

}  // namespace

TEST(PlannedModel, BranchesOnDataAreSteps) {
  expect_as_node_by_node(branch_on_data(), "planned_branch.onnx", 1);
}

TEST(PlannedModel, ConvolutionsInBranchesHaveConstantFilters) {
  OnnxFile then, otherwise, file = branch_on_data();
  then.nodes = {onnx_node("Reshape", {"x", "shape"}, {"image"}),
                onnx_node("Conv", {"image", "filter"}, {"c"}), onnx_node("Reshape", {"c", "flat"}, {"a"})};
  then.outputs = {onnx_value("a", {"N"})};
  otherwise.nodes = {onnx_node("Relu", {"x"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"N"})};
  file.nodes.pop_back();
  file.nodes.insert(file.nodes.begin(),
                    {onnx_node("Cast", {"shape_f"}, {"shape"}, "", {onnx_attribute("to", 7)}),
                     onnx_node("Cast", {"flat_f"}, {"flat"}, "", {onnx_attribute("to", 7)})});
  file.nodes.push_back(onnx_node("If", {"is_positive"}, {"y"}, "choose",
                                 {onnx_graph_attribute("then_branch", then.graph()),
                                  onnx_graph_attribute("else_branch", otherwise.graph())}));
  file.tensors.push_back(onnx_tensor("shape_f", {3}, {1, 1, -1}));
  file.tensors.push_back(onnx_tensor("flat_f", {1}, {-1}));
  file.tensors.push_back(onnx_tensor("filter", {1, 1, 1}, {2}));
  expect_as_node_by_node(file, "planned_convolution.onnx", 1);
}

TEST(PlannedModel, WhatBranchesMayTakeIsLimited) {
  const onnx::Model model = value_or_throw(onnx::read_model(branch_on_data().write("limited_branch.onnx")));
  const auto device = value_or_throw(engine::find_device("cpu"));
  onnx::Limits limits;
  limits.work = 100;
  auto planned = value_or_throw(PlannedModel::create(model, *device, limits));
  const onnx::DataValue small[] = {vector_of(elements_of(4, 1))}, large[] = {vector_of(elements_of(40, 1))};
  EXPECT_TRUE(planned.run(small));
  const auto refused = planned.run(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::limit);
}

/// Results of other shapes for each value of a flag: a plan for each.
TEST(PlannedModel, FlagsChooseThePlan) {
  const onnx::Model model = value_or_throw(onnx::read_model(decoder().write("planned_flags.onnx")));
  for (const char* device_name : {"reference", "cpu"}) {
    const auto device = value_or_throw(engine::find_device(device_name));
    auto planned = PlannedModel::create(model, *device);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(planned->programs(), 2U);
    for (const bool flag : {true, false, true})
      for (const std::int64_t past : {0, 3}) {
        const onnx::DataValue inputs[] = {vector_of({1, -2, 3}), flag_of(flag),
                                          vector_of(elements_of(past, 2))};
        const auto expected = value_or_throw(onnx::run(model, inputs, {}))[0].tensors[0];
        const auto got = value_or_throw(planned->run(inputs))[0].tensors[0];
        EXPECT_EQ(got.size(), flag ? 3 + past : 3);
        ASSERT_EQ(got.shape(), expected.shape());
        EXPECT_EQ(std::memcmp(expected.array().data, got.array().data, got.byte_size()), 0);
      }
    const onnx::DataValue wrong[] = {vector_of({1}), vector_of({1}), vector_of({1})};
    EXPECT_NE(planned->run(wrong).error().to_text().find("input 'cached' is f32[1]"), std::string::npos);
  }
}

/// Too many flags, and one that is more than one boolean, say what whole models say.
TEST(PlannedModel, OnlySingleBooleansAreFlags) {
  OnnxFile file = decoder();
  file.inputs[1] = onnx_value("cached", {"B"}, onnx_bool);
  const onnx::Model model = value_or_throw(onnx::read_model(file.write("planned_no_flags.onnx")));
  const auto device = value_or_throw(engine::find_device("reference"));
  const auto planned = PlannedModel::create(model, *device);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code(), ErrorCode::unsupported) << planned.error().to_text();
}
