// Models whose functions have loops and branches: the function gives what running the model gives.
#include <gtest/gtest.h>

#include <set>

#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/onnx/variants.h"
#include "tessera/op/interpreter.h"
#include "tests/support/onnx_file.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

std::vector<float> ramp(std::int64_t count, float scale) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(scale * static_cast<float>((i * 37 + 11) % 29 - 14));
  return out;
}

op::HostTensor input(op::Extents shape, float scale = 0.1F) {
  const auto values = ramp(op::element_count(shape), scale);
  return op::HostTensor::of<float>(ir::Dtype::f32, shape, std::span<const float>(values));
}

/// Runs the model node by node and as one function, and compares.
void expect_same(const onnx::Model& model, const ir::Function& function, std::vector<op::HostTensor> inputs) {
  std::vector<onnx::DataValue> values;
  for (const op::HostTensor& tensor : inputs) values.push_back({onnx::DataValue::Kind::tensor, {tensor}});
  const auto expected = value_or_throw(onnx::run(model, values));
  const auto got = value_or_throw(op::interpret(function, inputs));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const op::HostTensor& other = expected[i].tensors[0];
    ASSERT_EQ(got[i].shape(), other.shape()) << "result " << i;
    for (std::int64_t k = 0; k < other.size(); ++k)
      EXPECT_NEAR(got[i].values<float>()[static_cast<std::size_t>(k)],
                  other.values<float>()[static_cast<std::size_t>(k)], 1e-6)
          << "result " << i << ", element " << k;
  }
}

OnnxFile recurrent(const std::string& op, std::int64_t gates, const std::string& direction) {
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1, hidden = 3, width = 2;
  OnnxFile out;
  out.nodes = {onnx_node(op, {"x", "w", "r", "b"}, {"y", "y_h"}, "steps",
                         {onnx_attribute("hidden_size", hidden), onnx_attribute("direction", direction)})};
  out.tensors = {
      onnx_tensor("w", {directions, gates * hidden, width}, ramp(directions * gates * hidden * width, 0.05F)),
      onnx_tensor("r", {directions, gates * hidden, hidden},
                  ramp(directions * gates * hidden * hidden, 0.04F)),
      onnx_tensor("b", {directions, 2 * gates * hidden}, ramp(directions * 2 * gates * hidden, 0.02F))};
  out.inputs = {onnx_value("x", {"steps", "batch", "2"})};
  out.outputs = {onnx_value("y", {"steps", std::to_string(directions), "batch", "3"}),
                 onnx_value("y_h", {std::to_string(directions), "batch", "3"})};
  return out;
}

}  // namespace

TEST(FunctionRegions, RecurrencesOfAnyLengthAreLoops) {
  for (const auto& [op, gates] : {std::pair{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}})
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      SCOPED_TRACE(cat(op, " ", direction));
      const onnx::Model model =
          value_or_throw(onnx::read_model(recurrent(op, gates, direction).write("recurrent.onnx")));
      const auto function = onnx::import_function(model);
      ASSERT_TRUE(function) << function.error().to_text();
      EXPECT_TRUE(ir::verify(**function)) << ir::print(**function);
      for (const std::int64_t steps : {1, 2, 5}) expect_same(model, **function, {input({steps, 2, 2})});
    }
}

/// A copy for each step would be read from memory each time.
TEST(FunctionRegions, StepsThatAreWrittenOutMultiplyTheSameWeights) {
  for (const auto& [op, gates, products] : {std::tuple{"RNN", 1, 2U}, {"GRU", 3, 3U}, {"LSTM", 4, 2U}}) {
    SCOPED_TRACE(op);
    OnnxFile file = recurrent(op, gates, "forward");
    file.inputs = {onnx_value("x", {"5", "2", "2"})};
    file.outputs = {onnx_value("y", {"5", "1", "2", "3"}), onnx_value("y_h", {"1", "2", "3"})};
    const onnx::Model model = value_or_throw(onnx::read_model(file.write("written_out.onnx")));
    const ir::FunctionRef function = value_or_throw(onnx::import_function(model));
    std::set<const ir::Node*> weights;
    std::size_t count = 0;
    for (const auto& statement : function->body)
      if (const auto* call = ir::as<ir::Call>(*statement->value); call != nullptr && call->op == "matmul") {
        weights.insert(call->args[1].get());
        ++count;
      }
    EXPECT_GE(count, 5 * (products - 1));
    EXPECT_EQ(weights.size(), products);
    expect_same(model, *function, {input({5, 2, 2})});
  }
}

TEST(FunctionRegions, ABranchOnDataHasBothBodies) {
  const onnx::Model model = value_or_throw(onnx::read_model(branch_on_data().write("branch.onnx")));
  const auto function = onnx::import_function(model);
  ASSERT_TRUE(function) << function.error().to_text();
  EXPECT_TRUE(ir::verify(**function)) << ir::print(**function);
  for (const float scale : {1.0F, -1.0F})
    for (const std::int64_t n : {1, 4}) expect_same(model, **function, {input({n}, scale)});
}

TEST(FunctionRegions, BranchesOfDifferentTypesAreRefused) {
  OnnxFile then, otherwise;
  then.nodes = {onnx_node("Concat", {"x", "x"}, {"a"}, "", {onnx_attribute("axis", 0)})};
  then.outputs = {onnx_value("a", {"M"})};
  otherwise.nodes = {onnx_node("Relu", {"x"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"N"})};
  const OnnxFile file = choice_by_sum(then, otherwise, "K");
  const onnx::Model model = value_or_throw(onnx::read_model(file.write("branches.onnx")));
  const auto function = onnx::import_function(model);
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code(), ErrorCode::unsupported);
  EXPECT_NE(function.error().to_text().find("node 'choose' (If)"), std::string::npos)
      << function.error().to_text();
}

/// Where a flag decides, there is a function for each of its values.
TEST(FunctionRegions, FlagsChooseAmongFunctions) {
  const onnx::Model model = value_or_throw(onnx::read_model(flagged_decoder().write("flagged.onnx")));
  ASSERT_FALSE(onnx::import_function(model));
  const auto variants = value_or_throw(onnx::import_variants(model, 1));
  EXPECT_EQ(variants.flags, std::vector<std::size_t>{1});
  ASSERT_EQ(variants.functions.size(), 2U);
  const std::vector<op::HostTensor> inputs = {input({3}), input({2})};  // without the flag
  EXPECT_EQ(value_or_throw(op::interpret(*variants.functions[0], inputs))[0].shape(), op::Extents{3});
  EXPECT_EQ(value_or_throw(op::interpret(*variants.functions[1], inputs))[0].shape(), op::Extents{5});
  const auto none = onnx::import_variants(model, 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().to_text(), onnx::import_function(model).error().to_text());
}

TEST(FunctionRegions, ABranchThatLeavesOutAnAxisOfSizeOneStandsForBoth) {
  OnnxFile then, otherwise, file;
  then.nodes = {onnx_node("Squeeze", {"x", "one"}, {"a"})};
  then.outputs = {onnx_value("a", {"n"})};
  otherwise.nodes = {onnx_node("Identity", {"x"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"n", "k"})};
  file.nodes = {onnx_node("Cast", {"number"}, {"one"}, "", {onnx_attribute("to", 7)}),
                onnx_node("Shape", {"x"}, {"shape"}),
                onnx_node("Gather", {"shape", "one"}, {"size"}),
                onnx_node("Equal", {"size", "one"}, {"is_one"}),
                onnx_node("If", {"is_one"}, {"y"}, "choose",
                          {onnx_graph_attribute("then_branch", then.graph()),
                           onnx_graph_attribute("else_branch", otherwise.graph())}),
                onnx_node("Relu", {"y"}, {"z"})};
  file.tensors = {onnx_tensor("number", {1}, {1})};
  file.inputs = {onnx_value("x", {"n", "k"})};
  file.outputs = {onnx_value("z", {"n"})};
  const onnx::Model model = value_or_throw(onnx::read_model(file.write("squeezed.onnx")));
  const auto function = onnx::import_function(model);
  ASSERT_TRUE(function) << function.error().to_text();
  EXPECT_TRUE(ir::verify(**function)) << ir::print(**function);
  for (const std::int64_t n : {1, 3}) expect_same(model, **function, {input({n, 1})});
  EXPECT_FALSE(op::interpret(**function, std::vector{input({3, 2})}));
}

TEST(FunctionRegions, ResizesOfAnySizeAreFormulas) {
  for (const char* mode : {"nearest", "linear"})
    for (const char* coordinates : {"asymmetric", "half_pixel", "align_corners"}) {
      SCOPED_TRACE(cat(mode, " ", coordinates));
      OnnxFile file;
      file.nodes = {onnx_node("Resize", {"x", "", "scales"}, {"y"}, "larger",
                              {onnx_attribute("mode", std::string(mode)),
                               onnx_attribute("coordinate_transformation_mode", std::string(coordinates))})};
      file.tensors = {onnx_tensor("scales", {3}, {1, 2, 3})};
      file.inputs = {onnx_value("x", {"2", "h", "w"})};
      file.outputs = {onnx_value("y", {"2", "a", "b"})};
      const onnx::Model model = value_or_throw(onnx::read_model(file.write("resize.onnx")));
      const auto function = onnx::import_function(model);
      ASSERT_TRUE(function) << function.error().to_text();
      for (const std::int64_t n : {1, 2, 5}) expect_same(model, **function, {input({2, n, n + 1})});
    }
}

/// Exporters write `expand` with sizes that may be -1 and replace those: what a size is does not matter then.
TEST(FunctionSizes, ComparisonsThatHoldForAllSizesAreKnown) {
  const auto integers = [](const std::string& from, const std::string& to) {
    return onnx_node("Cast", {from}, {to}, "", {onnx_attribute("to", 7)});
  };
  OnnxFile file;
  file.tensors = {onnx_tensor("wide_f", {1}, {-1}), onnx_tensor("none_f", {3}, {-1, -1, -1}),
                  onnx_tensor("ones_f", {3}, {1, 1, 1})};
  file.nodes = {integers("wide_f", "wide"),
                integers("none_f", "none"),
                integers("ones_f", "ones"),
                onnx_node("Shape", {"x"}, {"own"}),
                onnx_node("Concat", {"own", "wide"}, {"asked"}, "", {onnx_attribute("axis", 0)}),
                onnx_node("Equal", {"asked", "none"}, {"is_none"}),
                onnx_node("Where", {"is_none", "ones", "asked"}, {"sizes"}),
                onnx_node("Unsqueeze", {"x", "two"}, {"column"}),
                onnx_node("Expand", {"column", "sizes"}, {"y"})};
  file.tensors.push_back(onnx_tensor("two_f", {1}, {2}));
  file.nodes.insert(file.nodes.begin(), integers("two_f", "two"));
  file.inputs = {onnx_value("x", {"n", "m"})};
  file.outputs = {onnx_value("y", {"n", "m", "1"})};
  const onnx::Model model = value_or_throw(onnx::read_model(file.write("expand.onnx")));
  const auto function = onnx::import_function(model);
  ASSERT_TRUE(function) << function.error().to_text();
  EXPECT_EQ(ir::print(**function).find("where"), std::string::npos) << ir::print(**function);
  for (const std::int64_t size : {0, 1, 4}) expect_same(model, **function, {input({size, 3})});
}

/// Whether a size is 1 depends on the size, that it is not negative does not.
TEST(FunctionSizes, OthersStayOpen) {
  for (const auto& [op, number, is_known] : {std::tuple{"Equal", 1.0F, false},
                                             {"Equal", -3.0F, true},
                                             {"Greater", -1.0F, true},
                                             {"Less", 0.0F, true},
                                             {"Greater", 5.0F, false},
                                             {"GreaterOrEqual", 0.0F, true},
                                             {"LessOrEqual", -1.0F, true},
                                             {"LessOrEqual", 0.0F, false}}) {
    SCOPED_TRACE(cat(op, " ", number));
    OnnxFile file;
    file.tensors = {onnx_tensor("number_f", {1}, {number})};
    file.nodes = {onnx_node("Cast", {"number_f"}, {"number"}, "", {onnx_attribute("to", 7)}),
                  onnx_node("Shape", {"x"}, {"own"}), onnx_node(op, {"own", "number"}, {"holds"}),
                  onnx_node("Cast", {"holds"}, {"y"}, "", {onnx_attribute("to", 1)})};
    file.inputs = {onnx_value("x", {"n"})};
    file.outputs = {onnx_value("y", {"1"})};
    const onnx::Model model = value_or_throw(onnx::read_model(file.write("compared.onnx")));
    const auto function = value_or_throw(onnx::import_function(model));
    EXPECT_EQ(function->body.empty(), is_known) << ir::print(*function);
    for (const std::int64_t size : {0, 1, 6}) expect_same(model, *function, {input({size})});
  }
}
