// Models as plans where sizes depend on data: against the run node by node.
#include "tessera/model/model_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/compile/plan_program.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/model/model_package.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/saved_plan.h"
#include "tests/support/message.h"
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

std::shared_ptr<engine::Engine> engine_on(const char* device) {
  return engine::Engine::create({.device = value_or_throw(engine::find_device(device))});
}

std::vector<HostTensor> tensors_of(std::span<const onnx::DataValue> values) {
  std::vector<HostTensor> out;
  for (const onnx::DataValue& value : values) out.push_back(value.tensors[0]);
  return out;
}

void expect_as_node_by_node(const OnnxFile& file, const std::string& name, std::size_t parts) {
  const onnx::Model model = value_or_throw(onnx::read_model(file.write(name)));
  for (const char* device_name : {"reference", "cpu"}) {
    const auto engine = engine_on(device_name);
    auto planned = plan_model(model, *engine);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(value_or_throw(planned->load(0))->parts.size(), parts);
    for (const std::int64_t size : {4, 1, 9})
      for (const std::int64_t each : {0, 1, 2}) {
        const onnx::DataValue inputs[] = {vector_of(elements_of(size, each))};
        const auto expected = value_or_throw(onnx::run(model, inputs, {}))[0].tensors[0];
        const auto run = planned->run(tensors_of(inputs));
        ASSERT_TRUE(run) << run.error().to_text();
        const HostTensor& got = (*run)[0];
        ASSERT_EQ(expected.shape(), got.shape());
        EXPECT_EQ(std::memcmp(expected.array().data, got.array().data, got.byte_size()), 0);
      }
  }
}

}  // namespace

TEST(ModelPlan, NonZeroCutsTheProgram) {
  OnnxFile file;
  file.nodes = {onnx_node("NonZero", {"x"}, {"places"}),
                onnx_node("Cast", {"places"}, {"y"}, "cast", {onnx_attribute("to", 1)})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"1", "M"})};
  expect_as_node_by_node(file, "planned_non_zero.onnx", 2);
}

TEST(ModelPlan, CompressKeepsWhatAConditionSays) {
  OnnxFile file;
  file.nodes = {onnx_node("Cast", {"x"}, {"is_kept"}, "cast", {onnx_attribute("to", 9)}),
                onnx_node("Compress", {"x", "is_kept"}, {"kept"}), onnx_node("Relu", {"kept"}, {"y"})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"M"})};
  expect_as_node_by_node(file, "planned_compress.onnx", 2);
}

TEST(ModelPlan, SlicesEndWhereTheProgramSays) {
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

onnx::DataValue flag_of(bool value) {
  HostTensor out = value_or_throw(HostTensor::allocate(op::Dtype::boolean, {1}));
  *out.array().data = std::byte{value};
  return {onnx::DataValue::Kind::tensor, {out}};
}

}  // namespace

TEST(ModelPlan, BranchesOnDataAreSteps) {
  expect_as_node_by_node(branch_on_data(), "planned_branch.onnx", 1);
}

TEST(ModelPlan, ConvolutionsInBranchesHaveConstantFilters) {
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

TEST(ModelPlan, WhatBranchesMayTakeIsLimited) {
  const onnx::Model model = value_or_throw(onnx::read_model(branch_on_data().write("limited_branch.onnx")));
  const auto engine = engine_on("cpu");
  onnx::Limits limits;
  limits.work = 100;
  auto planned = value_or_throw(plan_model(model, *engine, limits));
  const onnx::DataValue small[] = {vector_of(elements_of(4, 1))}, large[] = {vector_of(elements_of(40, 1))};
  EXPECT_TRUE(planned.run(tensors_of(small)));
  const auto refused = planned.run(tensors_of(large));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::limit);
}

/// Results of other shapes for each value of a flag: a plan for each.
TEST(ModelPlan, FlagsChooseThePlan) {
  const onnx::Model model = value_or_throw(onnx::read_model(flagged_decoder().write("planned_flags.onnx")));
  for (const char* device_name : {"reference", "cpu"}) {
    const auto engine = engine_on(device_name);
    auto planned = plan_model(model, *engine);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(planned->package().variants(), 2U);
    for (const bool flag : {true, false, true})
      for (const std::int64_t past : {0, 3}) {
        const onnx::DataValue inputs[] = {vector_of({1, -2, 3}), flag_of(flag),
                                          vector_of(elements_of(past, 2))};
        const auto expected = value_or_throw(onnx::run(model, inputs, {}))[0].tensors[0];
        const auto got = value_or_throw(planned->run(tensors_of(inputs)))[0];
        EXPECT_EQ(got.size(), flag ? 3 + past : 3);
        ASSERT_EQ(got.shape(), expected.shape());
        EXPECT_EQ(std::memcmp(expected.array().data, got.array().data, got.byte_size()), 0);
      }
    const onnx::DataValue wrong[] = {vector_of({1}), vector_of({1}), vector_of({1})};
    EXPECT_NE(planned->run(tensors_of(wrong)).error().to_text().find("input 'cached' is f32[1]"),
              std::string::npos);
  }
}

/// Too many flags, and one that is more than one boolean, say what whole models say.
TEST(ModelPlan, OnlySingleBooleansAreFlags) {
  OnnxFile file = flagged_decoder();
  file.inputs[1] = onnx_value("cached", {"B"}, 9);
  const onnx::Model model = value_or_throw(onnx::read_model(file.write("planned_no_flags.onnx")));
  const auto engine = engine_on("reference");
  const auto planned = plan_model(model, *engine);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code(), ErrorCode::unsupported) << planned.error().to_text();
}

/// One file has the programs for all values of the flags.
TEST(ModelPlan, ProgramsOfAllFlagsAreSavedTogether) {
  const onnx::Model model = value_or_throw(onnx::read_model(flagged_decoder().write("saved_flags.onnx")));
  const auto device = value_or_throw(engine::find_device("cpu"));
  const auto variants = value_or_throw(onnx::import_variants(model, plan::most_flags));
  std::vector<plan::Program> programs;
  for (const ir::FunctionRef& function : variants.functions)
    programs.push_back(value_or_throw(compiler::plan_program(function, device->target())).program);
  const std::string path = testing::TempDir() + "saved_flags.plan";
  value_or_throw(plan::save(compiler::package(*variants.functions[0], std::move(programs), "cpu",
                                              package_options(model, variants.flags)),
                            path));
  const SavedPlan saved = load_plan(path);
  ASSERT_EQ(saved.inputs().size(), 3U);
  EXPECT_EQ(saved.inputs()[1].name, "cached");
  EXPECT_EQ(saved.inputs()[1].dtype, Dtype::boolean);
  EXPECT_EQ(saved.inputs()[1].shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(saved.outputs()[0].shape, std::vector<std::int64_t>{-1});
  const Tensor x = from_vector<float>({1, -2, 3}, {3}), past = from_vector<float>({5, -6}, {2});
  const Tensor yes = from_vector<float>({1}, {1}) > 0, no = from_vector<float>({1}, {1}) < 0;
  EXPECT_EQ(saved({x, yes, past})[0].to_vector<float>(), (std::vector<float>{5, 0, 1, 0, 3}));
  EXPECT_EQ(saved({x, no, past})[0].to_vector<float>(), (std::vector<float>{0, 2, 0}));
  EXPECT_NE(message_of([&] {
              (void)saved({x, x, past});
            }).find("input 'cached' is f32[3], expected bool[1]"),
            std::string::npos);
}
