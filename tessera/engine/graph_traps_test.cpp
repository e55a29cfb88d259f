// Graph descriptions on the emulated device, and on a GPU where there is one: what they must refuse, in which
// order their nodes run, and what a change costs.
#include "tessera/engine/device_graph_fixture.h"

using namespace tessera;
using namespace tessera::description;
using engine::fixture::DeviceFloats;

namespace {

constexpr std::size_t count = 64;
constexpr const char* trap_kernels_text = R"(
extern "C" __global__ void scale(const float* x, float* y, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * by;
}
extern "C" __global__ void increase(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += 1;
})";

std::string kernel_node(const std::string& id, const std::string& name, const std::string& parameters) {
  return cat(R"({"id": ")", id, R"(", "kernel": ")", name,
             R"(", "source": "kernels.cu", "threads": [32], "grid": [2], "parameters": [)", parameters, "]}");
}
std::string scale(const std::string& id, const std::string& from, const std::string& to, double by) {
  return kernel_node(id, "scale",
                     cat(R"({"name": "x", "access": "read", "buffer": ")", from,
                         R"("}, {"name": "y", "access": "write", "buffer": ")", to,
                         R"("}, {"name": "by", "scalar": )", by, R"(, "dtype": "f32"})"));
}
std::string increase(const std::string& id, const std::string& buffer) {
  return kernel_node(id, "increase",
                     cat(R"({"name": "x", "access": "read_write", "buffer": ")", buffer, R"("})"));
}
std::string copy(const std::string& id, const std::string& from, const std::string& to) {
  return cat(R"({"id": ")", id, R"(", "captured": "copied", "parameters": [
    {"name": "from", "access": "read", "buffer": ")",
             from, R"("}, {"name": "to", "access": "write", "buffer": ")", to,
             R"("}, {"name": "bytes", "scalar": 256, "dtype": "i64"}]})");
}

class GraphTraps : public engine::fixture::DeviceGraph {
 protected:
  void SetUp() override {
    DeviceGraph::SetUp();
    if (device_ == nullptr) return;
    write_code(trap_kernels_text);
    x_ = filled(1);
  }

  [[nodiscard]] DeviceFloats filled(float value) const { return floats(std::vector<float>(count, value)); }

  /// Buffers x (external), a, b, out of f32, and i of i32.
  [[nodiscard]] Reading read(const std::vector<std::string>& nodes, const std::string& more = "") const {
    std::string buffers = R"({"id": "x", "lifetime": "external", "dtype": "f32", "shape": [64]})";
    for (const char* name : {"a", "b", "out"})
      buffers += cat(R"(, {"id": ")", name, R"(", "lifetime": "graph", "dtype": "f32", "shape": [64]})");
    buffers += R"(, {"id": "i", "lifetime": "graph", "dtype": "i32", "shape": [64]})";
    return reading(cat(R"({"buffers": [)", buffers, R"(], "nodes": [)", join(nodes, ", "), "]", more, "}"));
  }
  [[nodiscard]] Description description(const std::vector<std::string>& nodes) const {
    return read(nodes).description;
  }
  [[nodiscard]] Result<std::unique_ptr<HostGraph>> create(Description of) const {
    return DeviceGraph::create(std::move(of), {{"x", x_}});
  }
  void expect_refused(const std::vector<std::string>& nodes, const std::string& more,
                      const std::string& message) const {
    Reading made = read(nodes, more);
    std::string all = made.problems.to_text();
    if (const auto graph = create(std::move(made.description)); !graph) all += graph.error().to_text();
    EXPECT_NE(all.find(message), std::string::npos) << all;
  }

  DeviceFloats x_;
};

}  // namespace

TEST_P(GraphTraps, Trap_G2_ACycleThroughACaptureIsRefused) {
  expect_refused({scale("k", "b", "a", 2), copy("c", "a", "b")},
                 R"(, "dependencies": [{"before": "c", "after": "k"}, {"before": "k", "after": "c"}])",
                 "a cycle: ");
}

TEST_P(GraphTraps, Trap_G8_AnUpdateInPlaceAndAReaderAreOrdered) {
  const std::vector<std::string> updated{scale("k0", "x", "a", 3), increase("k1", "a"),
                                         scale("k2", "a", "out", 10)};
  const std::vector<std::string> unchanged{updated[0], updated[2], updated[1]};
  const auto before = value_or_throw(create(description(updated)));
  const auto after = value_or_throw(create(description(unchanged)));
  for (int launch = 0; launch < 5; ++launch) {
    EXPECT_EQ(launched(*before), 40);
    EXPECT_EQ(launched(*after), 30);
  }
}

TEST_P(GraphTraps, Trap_G13_WrongWiringIsRefused) {
  const std::string rest =
      R"(, {"name": "y", "access": "write", "buffer": "out"}, {"name": "by", "scalar": 1.0, "dtype": "f32"})";
  const std::string open = kernel_node("k", "scale", R"({"name": "x", "access": "read"})" + rest);
  const std::string wrong =
      kernel_node("k", "scale", R"({"name": "x", "access": "read", "buffer": "i", "dtype": "f32"})" + rest);
  expect_refused({open}, "", "the required input has no buffer and no edge");
  expect_refused({wrong}, "", "has dtype f32, buffer 'i' has i32");
  expect_refused({scale("a1", "x", "a", 2), scale("b1", "x", "b", 3), open},
                 R"(, "edges": [{"from": ["a1", "y"], "to": ["k", "x"]},
                                {"from": ["b1", "y"], "to": ["k", "x"]}])",
                 "two edges lead to the parameter");
}

TEST_P(GraphTraps, Trap_G17_WhatAChangeOfAKernelCosts) {
  const auto graph = value_or_throw(create(description({scale("k", "x", "out", 2)})));
  EXPECT_EQ(launched(*graph), 2);
  EXPECT_EQ(graph->update().tier, Tier::none);
  set_values(x_, std::vector<float>(count, 5));
  EXPECT_EQ(graph->update().tier, Tier::none);
  EXPECT_EQ(launched(*graph), 10);
  value_or_throw(graph->set_number("k", "by", 3.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  EXPECT_EQ(launched(*graph), 15);
  const auto other = filled(7);
  value_or_throw(graph->bind("x", other.bytes()));
  EXPECT_EQ(graph->update().tier, Tier::warm);
  EXPECT_EQ(launched(*graph), 21);
  value_or_throw(graph->set_grid("k", {1, 1, 1}));
  EXPECT_EQ(graph->update().tier, Tier::warm);
  EXPECT_EQ(launched(*graph), 21);
  value_or_throw(graph->resize("out", {128}));
  EXPECT_EQ(graph->update().tier, Tier::warm);
  EXPECT_EQ(launched(*graph), 21);
  Description more = description({scale("k", "x", "out", 3), increase("added", "out")});
  value_or_throw(graph->set_description(more));
  EXPECT_EQ(graph->update().tier, Tier::cold);
  more.nodes.pop_back();
  value_or_throw(graph->set_description(more));
  EXPECT_EQ(graph->update().tier, Tier::cold);
}

TEST_P(GraphTraps, Trap_G17_WhatAChangeOfACaptureCosts) {
  const auto graph = value_or_throw(create(description({copy("c", "x", "out")})));
  EXPECT_EQ(launched(*graph), 1);
  const auto other = filled(9);
  value_or_throw(graph->bind("x", other.bytes()));
  EXPECT_EQ(graph->update().tier, Tier::recapture);
  EXPECT_EQ(launched(*graph), 9);
  value_or_throw(graph->set_number("c", "bytes", std::int64_t{128}));
  EXPECT_EQ(graph->update().tier, Tier::recapture);
  EXPECT_EQ(launched(*graph), 9);
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphTraps, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);
