#include "tessera/model/onnx_model.h"

#include <gtest/gtest.h>

#include <thread>

#include "tessera/engine/engine.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"
#include "tests/support/onnx_file.h"

namespace ts = tessera;
using namespace tessera::fixture;

namespace {

std::vector<float> values(const ts::Tensor& tensor) { return tensor.to_vector<float>(); }

}  // namespace

TEST(OnnxModel, IsAFunctionOnTensors) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  const ts::Tensor x = ts::from_vector<float>({1, 1}, {1, 2});
  EXPECT_EQ(values(model({x})[0]), (std::vector<float>{5, 0, 10}));
  EXPECT_EQ(values(model(ts::NamedTensors{{"x", x}}).at("y")), (std::vector<float>{5, 0, 10}));
}

TEST(OnnxModel, SaysWhatItTakesAndGives) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  ASSERT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].dtype, ts::f32);
  EXPECT_EQ(*model.inputs()[0].shape, (std::vector<std::string>{"N", "2"}));
  EXPECT_EQ(model.outputs()[0].name, "y");
}

TEST(OnnxModel, TakesAnySizeOfASymbol) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  for (const std::int64_t n : {0, 1, 7}) EXPECT_EQ(model({ts::ones({n, 2})})[0].shape(), (ts::Shape{n, 3}));
}

TEST(OnnxModel, RecordsAndComputesWhenAsked) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = engine});
  const ts::Tensor y = model({ts::ones({4, 2}, {.engine = engine})})[0];
  EXPECT_EQ(engine->statistics().evaluations, 0U);
  EXPECT_EQ(values(y)[2], 10);
  EXPECT_EQ(engine->statistics().evaluations, 1U);
}

TEST(OnnxModel, GradientsFlowThroughIt) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  ts::Tensor x = ts::from_vector<float>({1, 1}, {1, 2});
  x.requires_grad();
  ts::sum(model({x})[0]).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<float>{1 + 3, 4 + 6}));  // the second column is cut off
}

TEST(OnnxModel, OutlivesItsResultsAndTheOtherWayRound) {
  ts::Tensor y;
  {
    const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
    y = model({ts::ones({1, 2})})[0];
  }
  EXPECT_EQ(values(y), (std::vector<float>{5, 0, 10}));
}

TEST(OnnxModel, ServesSeveralThreads) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  std::vector<std::thread> threads;
  std::vector<float> got(4);
  for (std::size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k)
        got[i] = model({ts::full({1, 2}, static_cast<double>(i))})[0].item<float>({0, 0});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, (std::vector<float>{0, 5, 10, 15}));
}

TEST(OnnxModel, ComputesWhereAShapeDependsOnData) {
  OnnxFile file;
  file.nodes = {onnx_node("NonZero", {"x"}, {"places"}), onnx_node("Cast", {"places"}, {"y"})};
  file.nodes[1] += onnx_field(5, onnx_field(1, "to") + onnx_integer(3, 1) + onnx_integer(20, 2));
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"1", "M"})};
  const ts::OnnxModel model = ts::load_onnx(file.write("non_zero.onnx"));
  const auto y = model({ts::from_vector<float>({0, 3, 0, 5}, {4})})[0];
  EXPECT_EQ(y.shape(), (ts::Shape{1, 2}));
  EXPECT_EQ(values(y), (std::vector<float>{1, 3}));
}

TEST(OnnxModel, ErrorsNameFileNodeAndCaller) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  const std::string wrong_shape = message_of([&] { (void)model({ts::ones({1, 5})}); });
  EXPECT_NE(wrong_shape.find("input 'x' is f32[1, 5]"), std::string::npos) << wrong_shape;
  EXPECT_NE(wrong_shape.find("onnx_model.onnx"), std::string::npos) << wrong_shape;
  EXPECT_NE(wrong_shape.find("onnx_model_test.cpp:"), std::string::npos) << wrong_shape;
  EXPECT_NE(message_of([&] { (void)model({ts::Tensor()}); }).find("is no tensor"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)model(std::vector<ts::Tensor>{}); }).find("takes 1 inputs, got 0"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)model(ts::NamedTensors{{"z", ts::ones({1, 2})}});
            }).find("takes the inputs 'x', got 'z'"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)ts::load_onnx("nowhere.onnx"); }).find("nowhere.onnx"), std::string::npos);
}

TEST(OnnxModel, WhatIsWrongWhenItIsEvaluatedNamesTheNode) {
  OnnxFile file;
  file.nodes = {onnx_node("Relu", {"x"}, {"r"}, "first"),
                onnx_node("Cast", {"r"}, {"i"}, "to_index", {onnx_attribute("to", 7)}),
                onnx_node("Gather", {"w", "i"}, {"y"}, "lookup")};
  file.tensors = {onnx_tensor("w", {3}, {1, 2, 3})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"N"})};
  ts::Tensor y;
  {
    const ts::OnnxModel model = ts::load_onnx(file.write("lookup.onnx"));
    y = model({ts::from_vector<float>({9, 0}, {2})})[0];
  }
  const std::string message = message_of([&] { (void)values(y); });
  EXPECT_NE(message.find("lookup.onnx: node 'lookup' (Gather)"), std::string::npos) << message;
}

TEST(OnnxModel, ListsAllOperatorsThatAreNotThere) {
  OnnxFile file = dense_layer();
  file.nodes.push_back(onnx_node("Foo", {"y"}, {"foo"}));
  file.nodes.push_back(onnx_node("Bar", {"y"}, {"bar"}));
  const std::string message = message_of([&] { (void)ts::load_onnx(file.write("unknown.onnx")); });
  EXPECT_NE(message.find("Foo of opset 13"), std::string::npos) << message;
  EXPECT_NE(message.find("Bar of opset 13"), std::string::npos) << message;
}

TEST(OnnxModel, KeepsToItsBudget) {
  const std::string path = dense_layer().write("onnx_model.onnx");
  const ts::OnnxModel model = ts::load_onnx(path, {.limits = {.work = 1000}});
  EXPECT_EQ(model({ts::ones({10, 2})})[0].shape(), (ts::Shape{10, 3}));
  EXPECT_NE(message_of([&] {
              (void)model({ts::ones({1000, 2})});
            }).find("at most 1000 are allowed"),
            std::string::npos);
}
