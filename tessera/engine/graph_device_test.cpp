// Graph descriptions on the emulated device, and on a GPU where there is one.
#include "tessera/engine/graph_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tessera/base/text.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/describe/read_json.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"

using namespace tessera;
using namespace tessera::description;
using runtime::cuda::TestDevice;

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
    {"id": "scale", "kernel": "scale", "source": "SOURCE", "threads": [64], "grid": [4], "parameters": [
      {"name": "x", "access": "read", "buffer": "x"}, {"name": "y", "access": "write", "buffer": "y"},
      {"name": "by", "scalar": 2.0, "dtype": "f32"}, {"name": "n", "scalar": 256, "dtype": "i32"}]},
    {"id": "above", "kernel": "above", "source": "SOURCE", "threads": [64], "grid": [4], "parameters": [
      {"name": "x", "access": "read", "buffer": "z"}, {"name": "rows", "access": "append", "buffer": "rows"},
      {"name": "least", "scalar": 400.0, "dtype": "f32"}, {"name": "n", "scalar": 256, "dtype": "i32"}]}]
})";

class GraphOnDevice : public ::testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    auto opened = runtime::cuda::open_test_device(GetParam());
    if (!opened) GTEST_SKIP() << opened.error().to_text();
    cuda_ = *std::move(opened);
    device_ = value_or_throw(engine::make_graph_device(cuda_));
    folder_ = std::filesystem::temp_directory_path() / cat("tessera_graph_", ::getpid());
    std::filesystem::create_directories(folder_);
    write_code(kernels_text);
    x_ = value_or_throw(device_->allocate(256 * sizeof(float)));
    std::vector<float> values(256);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    value_or_throw(device_->copy_in(x_.get(), std::as_bytes(std::span(values))));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void write_code(std::string_view text) const { std::ofstream(folder_ / "kernels.cu") << text; }

  [[nodiscard]] Description description() const {
    std::string text = description_text;
    for (std::size_t at = 0; (at = text.find("SOURCE")) != std::string::npos;)
      text.replace(at, 6, "kernels.cu");
    auto read = value_or_throw(read_description((folder_ / "graph.json").string(), text));
    EXPECT_TRUE(read.problems.diagnostics().empty());
    return std::move(read.description);
  }

  [[nodiscard]] KernelTable kernels(const Description& of) const {
    KernelTable out;
    const auto& driver = cuda_->context()->driver();
    engine::add_stream_capture(out, device_, "copied", [&driver](const op::StreamCall& call) {
      const auto bytes = static_cast<std::size_t>(call.shape(0)[0]) * sizeof(float);
      const auto result = driver.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(call.data<float>(1)),
                                                   reinterpret_cast<CUdeviceptr>(call.data<float>(0)), bytes,
                                                   static_cast<CUstream>(call.stream()));
      if (result != CUDA_SUCCESS) throw std::runtime_error("the copy was refused");
    });
    value_or_throw(engine::add_kernel_files(out, device_, of));
    return out;
  }
  [[nodiscard]] std::unique_ptr<HostGraph> graph() const {
    Description of = description();
    KernelTable table = kernels(of);
    return value_or_throw(
        HostGraph::create(std::move(of), std::move(table),
                          {.bindings = {{"x", {x_.get(), 256 * sizeof(float)}}}, .device = device_}));
  }
  static std::vector<float> floats(const std::vector<std::byte>& bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  std::shared_ptr<runtime::cuda::CudaDevice> cuda_;
  GraphDeviceRef device_;
  std::filesystem::path folder_;
  std::shared_ptr<std::byte> x_;
};

TEST_P(GraphOnDevice, Trap_G1_KernelsAndCapturesAreOrderedByTheirAccesses) {
  const auto graph = this->graph();
  for (int i = 0; i < 3; ++i) {
    const LaunchReport report = value_or_throw(graph->launch());
    EXPECT_TRUE(report.overflows.empty());
    const auto z = floats(value_or_throw(graph->content("z")));
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
    return floats(value_or_throw(graph->content("y")))[1];
  };
  EXPECT_EQ(first(), 2);
  std::string other = kernels_text;
  other.replace(other.find("x[i] * by"), 9, "x[i] - by");
  write_code(other);
  EXPECT_EQ(first(), -1);
  write_code("#error broken");
  EXPECT_EQ(first(), -1);
}

TEST_P(GraphOnDevice, OpsRunOnTheDeviceToo) {
  Builder b;
  b.external("x", Dtype::f32, {256}).graph("y", Dtype::f32, {256}).graph("n", Dtype::i32, {1});
  b.op("twice", "add", {read("a", {.buffer = "x"}), read("b", {.buffer = "x"}), write("y", {.buffer = "y"})});
  b.for_("loop", 3, "n");
  auto graph = value_or_throw(HostGraph::create(
      *b.finish(), {}, {.bindings = {{"x", {x_.get(), 256 * sizeof(float)}}}, .device = device_}));
  static_cast<void>(value_or_throw(graph->launch()));
  EXPECT_EQ(floats(value_or_throw(graph->content("y")))[100], 200);
  std::int32_t n = 0;
  std::memcpy(&n, value_or_throw(graph->content("n")).data(), sizeof n);
  EXPECT_EQ(n, 2);
}

TEST_P(GraphOnDevice, FunctionsOfTheHostAreRefused) {
  Builder b;
  b.external("x", Dtype::f32, {256}).graph("y", Dtype::f32, {256});
  b.kernel("host", [](KernelCall&) {}, {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  const auto made = HostGraph::create(*b.finish(), b.kernels(), {.device = device_});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("is a function of the host, the graph is on cuda:0"),
            std::string::npos)
      << made.error().to_text();
  Description of = description();
  const auto on_host = HostGraph::create(of, kernels(of), {});
  ASSERT_FALSE(on_host);
  EXPECT_NE(on_host.error().message().find("is for a device, the graph has none"), std::string::npos)
      << on_host.error().to_text();
}

TEST_P(GraphOnDevice, WhatIsWrongIsSaidAtTheNode) {
  write_code("#error oh");
  const auto broken = graph()->launch();
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message().find("node 'scale': "), std::string::npos) << broken.error().to_text();
  EXPECT_NE(broken.error().to_text().find("graph.json:"), std::string::npos) << broken.error().to_text();
  std::filesystem::remove(folder_ / "kernels.cu");
  Description of = description();
  const auto missing = HostGraph::create(of, kernels(of), {.device = device_});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().to_text().find("kernels.cu"), std::string::npos) << missing.error().to_text();
}

INSTANTIATE_TEST_SUITE_P(All, GraphOnDevice, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);

}  // namespace
