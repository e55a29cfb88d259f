#include "tessera/model/onnx_model.h"

#include <gtest/gtest.h>

#include <thread>

#include "tessera/engine/engine.h"
#include "tessera/engine/record.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"
#include "tests/support/onnx_file.h"

namespace ts = tessera;
using namespace tessera::fixture;

namespace {

std::vector<float> values(const ts::Tensor& tensor) { return tensor.to_vector<float>(); }

/// What this thread recorded meanwhile.
template <class F>
std::uint64_t nodes_of(F&& f) {
  const std::uint64_t before = ts::engine::node_numbers.next();
  f();
  return ts::engine::node_numbers.next() - before - 1;
}

/// A stream with a cache: y = relu(x + cache), and the next cache is y + 1. Both are [N].
OnnxFile stream_with_cache() {
  return {{onnx_node("Add", {"x", "cache"}, {"sum"}), onnx_node("Relu", {"sum"}, {"y"}),
           onnx_node("Add", {"y", "one"}, {"next"})},
          {onnx_tensor("one", {}, {1})},
          {onnx_value("x", {"N"}), onnx_value("cache", {"N"})},
          {onnx_value("y", {"N"}), onnx_value("next", {"N"})}};
}

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

TEST(OnnxModel, ComputesByPlansAndRecordsNothing) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = engine});
  const ts::Tensor x = ts::ones({4, 2}, {.engine = engine}).eval();
  const ts::Tensor y = model({x})[0];
  EXPECT_TRUE(y.is_evaluated());
  EXPECT_EQ(engine->statistics().plans_made, 1U);
  EXPECT_EQ(values(y)[2], 10);
  const std::uint64_t evaluations = engine->statistics().evaluations;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nodes_of([&] { (void)model({x}); }), 1U) << "the output alone";
  EXPECT_EQ(engine->statistics().evaluations, evaluations + 3);
  EXPECT_EQ(engine->statistics().plans_made, 1U);
  EXPECT_EQ(engine->statistics().runs(ts::engine::Tier::streamed), 1U) << "the input alone was not by a plan";
  EXPECT_TRUE(model.why_recorded().empty());
}

TEST(OnnxModel, OnePlanServesAllSizes) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = engine});
  for (const std::int64_t n : {3, 1, 8, 2, 64, 0, 5})
    EXPECT_EQ(values(model({ts::from_vector(std::vector<float>(static_cast<std::size_t>(2 * n), 1), {n, 2},
                                            {.engine = engine})})[0])
                  .size(),
              static_cast<std::size_t>(3 * n));
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}

TEST(OnnxModel, InputsAreEvaluatedFirst) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  const ts::Tensor wide = ts::from_vector<float>({9, 1, 9, 1}, {2, 2});
  EXPECT_EQ(values(model({ts::ones({1, 2}) * 0.5F + 0.5F})[0]), (std::vector<float>{5, 0, 10}));
  // Views: of memory with gaps, and in another order.
  EXPECT_EQ(values(model({wide.slice({{}, {1, 2}}) + ts::zeros({2, 2})})[0]),
            (std::vector<float>{5, 0, 10, 5, 0, 10}));
  const ts::Tensor turned = ts::from_vector<float>({1, 2, 10, 20}, {2, 2}).transpose().eval();
  EXPECT_EQ(values(model({turned})[0]), values(model({ts::from_vector<float>({1, 10, 2, 20}, {2, 2})})[0]));
}

TEST(OnnxModel, OutputsThatAreHeldStay) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  std::vector<ts::Tensor> held;
  for (int i = 0; i < 12; ++i) held.push_back(model({ts::full({1, 2}, i)})[0]);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(held[static_cast<std::size_t>(i)].item<float>({0, 0}), 5.0F * i);
}

TEST(OnnxModel, CachesGoRoundAndOutputsUseTheirMemoryAgain) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(stream_with_cache().write("stream.onnx"), {.engine = engine});
  ts::Tensor cache = ts::zeros({3}, {.engine = engine}).eval();
  const ts::Tensor x = ts::ones({3}, {.engine = engine}).eval();
  std::uint64_t allocations = 0;
  for (int i = 0; i < 20; ++i) {
    const auto out = model({x, cache});
    EXPECT_EQ(values(out[0])[2], 1.0F + 2.0F * static_cast<float>(i));
    cache = out[1];
    if (i == 9) allocations = engine->memory().allocations;
  }
  EXPECT_EQ(engine->memory().allocations, allocations);
}

TEST(OnnxModel, IsRecordedWhileAFunctionIsTraced) {
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"));
  const auto twice = ts::compile([&](const ts::Tensor& x) { return model({x})[0] * 2.0F; });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(twice(ts::ones({1, 2}))), (std::vector<float>{10, 0, 20}));
  const auto gradient = ts::grad([&](const ts::Tensor& x) { return ts::sum(model({x})[0]); });
  EXPECT_EQ(values(gradient(ts::ones({1, 2}))), (std::vector<float>{1 + 3, 4 + 6}));
}

TEST(OnnxModel, ExplainSaysWhatACallDid) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = engine});
  const ts::Tensor x = ts::ones({4, 2}, {.engine = engine}).eval();
  (void)model({x});
  EXPECT_NE(engine->explain().find("onnx_model.onnx: plan cold"), std::string::npos) << engine->explain();
  (void)model({x});
  EXPECT_NE(engine->explain().find("onnx_model.onnx: plan none"), std::string::npos) << engine->explain();
  (void)model({ts::ones({5, 2}, {.engine = engine}).eval()});
  EXPECT_NE(engine->explain().find("(sizes d0=5"), std::string::npos) << engine->explain();
}

TEST(OnnxModel, CallsAreProfiled) {
  const auto engine = ts::engine::Engine::create();
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = engine});
  const ts::Tensor x = ts::ones({4, 2}, {.engine = engine}).eval();
  engine->set_profiling(ts::ProfilingLevel::per_kernel);
  for (int i = 0; i < 2; ++i) (void)model({x});
  EXPECT_EQ(engine->profile().evaluations, 2U);
  EXPECT_FALSE(engine->profile().kernels.empty());
}

/// A loop that its data end is no plan: calls are recorded, and say why.
TEST(OnnxModel, SaysWhyItIsRecorded) {
  const auto off = ts::engine::Engine::create({.plans = {.enabled = false}});
  const ts::OnnxModel model = ts::load_onnx(dense_layer().write("onnx_model.onnx"), {.engine = off});
  EXPECT_EQ(model.why_recorded(), "plans are off");
  const ts::Tensor y = model({ts::ones({1, 2}, {.engine = off})})[0];
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(values(y), (std::vector<float>{5, 0, 10}));
}

/// Sizes that only recording takes: the function says that both are the same, and one is spread over the
/// other.
TEST(OnnxModel, SizesThatThePlanDoesNotTakeAreRecorded) {
  OnnxFile file;
  file.nodes = {onnx_node("Add", {"x", "z"}, {"y"}, "spread")};
  file.inputs = {onnx_value("x", {"N"}), onnx_value("z", {"M"})};
  file.outputs = {onnx_value("y", {"K"})};
  const ts::OnnxModel model = ts::load_onnx(file.write("spread.onnx"));
  EXPECT_EQ(values(model({ts::ones({3}), ts::ones({3})})[0]), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(values(model({ts::ones({3}), ts::ones({1})})[0]), (std::vector<float>{2, 2, 2}));
  const std::string wrong = message_of([&] { (void)values(model({ts::ones({3}), ts::ones({2})})[0]); });
  EXPECT_NE(wrong.find("node 'spread' (Add)"), std::string::npos) << wrong;
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
    threads.emplace_back([&, i] {  // at once, and of other sizes
      for (int k = 0; k < 50; ++k)
        got[i] = model({ts::full({1 + static_cast<std::int64_t>(i) % 2, 2}, static_cast<double>(i))})[0]
                     .item<float>({0, 0});
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

TEST(OnnxModel, WhatIsWrongWhenItComputesNamesTheNodeAndTheCaller) {
  OnnxFile file;
  file.nodes = {onnx_node("Relu", {"x"}, {"r"}, "first"),
                onnx_node("Cast", {"r"}, {"i"}, "to_index", {onnx_attribute("to", 7)}),
                onnx_node("Gather", {"w", "i"}, {"y"}, "lookup")};
  file.tensors = {onnx_tensor("w", {3}, {1, 2, 3})};
  file.inputs = {onnx_value("x", {"N"})};
  file.outputs = {onnx_value("y", {"N"})};
  const ts::OnnxModel model = ts::load_onnx(file.write("lookup.onnx"));
  const std::string message = message_of([&] { (void)model({ts::from_vector<float>({9, 0}, {2})}); });
  EXPECT_NE(message.find("lookup.onnx: node 'lookup' (Gather)"), std::string::npos) << message;
  EXPECT_NE(message.find("called at"), std::string::npos) << message;
  EXPECT_NE(message.find("onnx_model_test.cpp:"), std::string::npos) << message;
  EXPECT_EQ(values(model({ts::from_vector<float>({2, 0}, {2})})[0]), (std::vector<float>{3, 1}));
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
