// Graph descriptions on the emulated device, and on a GPU where there is one.
#include "tessera/engine/graph_device.h"

#include "tessera/describe/builder.h"
#include "tessera/engine/device_graph_fixture.h"
#include "tessera/engine/graph_package.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr const char* kernels_text = R"(
extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * by;
}
extern "C" __global__ void above(const float* x, float* rows, unsigned long long* count,
                                 unsigned long long capacity, float least, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || !(x[i] > least)) return;
  const unsigned long long at = atomicAdd(count, 1ull);
  if (at < capacity) rows[at] = x[i];
})";

constexpr const char* description_text = R"({
  "buffers": [
    {"id": "x", "lifetime": "external", "dtype": "f32", "shape": [256]},
    {"id": "y", "lifetime": "graph", "dtype": "f32", "shape": [256]},
    {"id": "z", "lifetime": "graph", "dtype": "f32", "shape": [256]},
    {"id": "rows", "lifetime": "graph", "dtype": "f32", "shape": [100]}],
  "nodes": [
    {"id": "copy", "captured": "copied", "parameters": [
      {"name": "from", "access": "read", "buffer": "y"}, {"name": "to", "access": "write", "buffer": "z"}]},
    {"id": "scale", "kernel": "scale", "source": "kernels.cu", "threads": [64], "grid": [4], "parameters": [
      {"name": "x", "access": "read", "buffer": "x"}, {"name": "y", "access": "write", "buffer": "y"},
      {"name": "by", "scalar": 2.0, "dtype": "f32"}, {"name": "n", "scalar": 256, "dtype": "i32"}]},
    {"id": "above", "kernel": "above", "source": "kernels.cu", "threads": [64], "grid": [4], "parameters": [
      {"name": "x", "access": "read", "buffer": "z"}, {"name": "rows", "access": "append", "buffer": "rows"},
      {"name": "least", "scalar": 400.0, "dtype": "f32"}, {"name": "n", "scalar": 256, "dtype": "i32"}]}]
})";

class GraphOnDevice : public engine::fixture::DeviceGraph {
 protected:
  void SetUp() override {
    DeviceGraph::SetUp();
    if (device_ == nullptr) return;
    write_code(kernels_text);
    std::vector<float> values(256);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    x_ = floats(values);
  }

  [[nodiscard]] Description description() const {
    Reading read = reading(description_text);
    EXPECT_TRUE(read.problems.diagnostics().empty());
    return std::move(read.description);
  }
  [[nodiscard]] std::unique_ptr<HostGraph> graph() const {
    return value_or_throw(create(description(), {{"x", x_}}));
  }

  engine::fixture::DeviceFloats x_;
};

TEST_P(GraphOnDevice, Trap_G1_KernelsAndCapturesAreOrderedByTheirAccesses) {
  const auto graph = this->graph();
  for (int i = 0; i < 3; ++i) {
    const LaunchReport report = value_or_throw(graph->launch());
    EXPECT_TRUE(report.overflows.empty());
    const auto z = content(*graph, "z");
    for (std::size_t k = 0; k < z.size(); ++k) ASSERT_EQ(z[k], 2 * static_cast<float>(k));
    EXPECT_EQ(value_or_throw(graph->count("rows")), 55U);
  }
}

TEST_P(GraphOnDevice, Trap_G10_Trap_G11_CountersAreResetAndOverflowIsReported) {
  const auto graph = this->graph();
  const std::pair<double, std::uint64_t> cases[] = {{400, 55}, {500, 5}, {999, 0}, {400, 55}};
  for (const auto& [least, expected] : cases) {
    value_or_throw(graph->set_number("above", "least", least));
    EXPECT_EQ(graph->update().tier, Tier::hot);
    EXPECT_TRUE(value_or_throw(graph->launch()).overflows.empty());
    EXPECT_EQ(value_or_throw(graph->count("rows")), expected);
  }
  value_or_throw(graph->set_number("above", "least", 211.0));
  EXPECT_FALSE(graph->update().error);
  const LaunchReport report = value_or_throw(graph->launch());
  ASSERT_EQ(report.overflows.size(), 1U);
  EXPECT_EQ(report.overflows[0].asked, 150U);
  EXPECT_EQ(report.overflows[0].capacity, 100U);
  EXPECT_EQ(value_or_throw(graph->count("rows")), 100U);
}

TEST_P(GraphOnDevice, Trap_G15_AFileThatChangesIsLoadedAgain) {
  const auto graph = this->graph();
  const auto first = [&] {
    static_cast<void>(value_or_throw(graph->launch()));
    return content(*graph, "y")[1];
  };
  EXPECT_EQ(first(), 2);
  std::string other = kernels_text;
  other.replace(other.find("x[i] * by"), 9, "x[i] - by");
  write_code(other);
  EXPECT_EQ(first(), -1);
  write_code("#error broken");
  EXPECT_EQ(first(), -1);
}

TEST_P(GraphOnDevice, AGraphFromAFileCarriesItsCodeAndIsChangedInPlace) {
  const std::string bytes =
      value_or_throw(engine::to_bytes(value_or_throw(engine::compile_graph(description(), *device_))));
  write_code("#error the file is looked at");
  auto package =
      value_or_throw(engine::graph_from_bytes(Bytes::copy(std::as_bytes(std::span(bytes))), "x.plan"));
  EXPECT_EQ(package.device, device_->name());
  KernelTable table;
  engine::add_stream_capture(table, "copied", copies());
  const auto graph = value_or_throw(engine::make_graph(
      std::move(package), table, {.bindings = {{"x", x_.bytes()}}, .device = graph_device_}));
  for (const float by : {2.0F, 3.0F}) {
    static_cast<void>(value_or_throw(graph->launch()));
    const auto z = content(*graph, "z");
    for (std::size_t k = 0; k < z.size(); ++k) ASSERT_EQ(z[k], by * static_cast<float>(k));
    value_or_throw(graph->set_number("scale", "by", 3.0));
    EXPECT_EQ(graph->update().tier, Tier::hot);
  }
  EXPECT_FALSE(engine::make_graph(value_or_throw(engine::compile_graph(description(), *device_)), {},
                                  {.device = graph_device_}));  // the capture is missing
}

TEST_P(GraphOnDevice, OpsRunOnTheDeviceToo) {
  Builder b;
  b.external("x", Dtype::f32, {256}).graph("y", Dtype::f32, {256}).graph("n", Dtype::i32, {1});
  b.op("twice", "add", {read("a", {.buffer = "x"}), read("b", {.buffer = "x"}), write("y", {.buffer = "y"})});
  b.for_("loop", 3, "n");
  const auto graph = value_or_throw(create(*b.finish(), {{"x", x_}}));
  static_cast<void>(value_or_throw(graph->launch()));
  EXPECT_EQ(content(*graph, "y")[100], 200);
  std::int32_t n = 0;
  std::memcpy(&n, value_or_throw(graph->content("n")).data(), sizeof n);
  EXPECT_EQ(n, 2);
}

TEST_P(GraphOnDevice, FunctionsOfTheHostAreRefused) {
  Builder b;
  b.external("x", Dtype::f32, {256}).graph("y", Dtype::f32, {256});
  b.kernel("host", [](KernelCall&) {}, {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  const auto made = HostGraph::create(*b.finish(), b.kernels(), {.device = graph_device_});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("is a function of the host, the graph is on cuda:0"),
            std::string::npos)
      << made.error().to_text();
  KernelTable table;
  engine::add_stream_capture(table, "copied", copies());
  value_or_throw(engine::add_kernel_files(table, description()));
  const auto on_host = HostGraph::create(description(), table, {});
  ASSERT_FALSE(on_host);
  EXPECT_NE(on_host.error().message().find("is for a device, the graph has none"), std::string::npos)
      << on_host.error().to_text();
}

TEST_P(GraphOnDevice, WhatIsWrongIsSaidAtTheNode) {
  write_code("#error oh");
  const auto broken = create(description(), {{"x", x_}});
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message().find("node 'scale': "), std::string::npos) << broken.error().to_text();
  EXPECT_NE(broken.error().to_text().find("graph.json:"), std::string::npos) << broken.error().to_text();
  std::filesystem::remove(folder_ / "kernels.cu");
  const auto missing = create(description());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().to_text().find("kernels.cu"), std::string::npos) << missing.error().to_text();
}

INSTANTIATE_TEST_SUITE_P(All, GraphOnDevice, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);

}  // namespace
