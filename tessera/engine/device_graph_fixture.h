// Descriptions on the emulated device, and on a GPU where there is one, with kernels in a file: for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "tessera/base/text.h"
#include "tessera/describe/host_graph.h"
#include "tessera/describe/read_json.h"
#include "tessera/engine/graph_device.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"

namespace tessera::engine::fixture {

/// Floats in memory of a device.
struct DeviceFloats {
  std::shared_ptr<std::byte> memory;
  std::size_t count = 0;

  [[nodiscard]] std::span<std::byte> bytes() const { return {memory.get(), count * sizeof(float)}; }
};

class DeviceGraph : public runtime::cuda::OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    if (device_ == nullptr) return;
    graph_device_ = value_or_throw(make_graph_device(device_));
    folder_ = std::filesystem::temp_directory_path() / cat("tessera_graph_", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void write_code(std::string_view text) const { std::ofstream(folder_ / "kernels.cu") << text; }

  [[nodiscard]] DeviceFloats floats(const std::vector<float>& values) const {
    DeviceFloats out{value_or_throw(graph_device_->allocate(values.size() * sizeof(float))), values.size()};
    set_values(out, values);
    return out;
  }
  void set_values(const DeviceFloats& to, const std::vector<float>& values) const {
    value_or_throw(graph_device_->copy_in(to.memory.get(), std::as_bytes(std::span(values))));
  }
  [[nodiscard]] std::vector<float> values_of(const DeviceFloats& from) const {
    std::vector<float> out(from.count);
    value_or_throw(graph_device_->copy_out(from.memory.get(), std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// A description beside the file of kernels.
  [[nodiscard]] description::Reading reading(const std::string& json) const {
    return value_or_throw(description::read_description((folder_ / "graph.json").string(), json));
  }

  /// Its kernels are those in the file; "copied" copies what is at its first pin to its second, all of it or
  /// as many bytes as its number says.
  [[nodiscard]] Result<std::unique_ptr<description::HostGraph>> create(
      description::Description of, const std::map<std::string, DeviceFloats>& bindings = {}) const {
    description::KernelTable table;
    add_stream_capture(table, "copied", copies());
    TESSERA_TRY(add_kernel_files(table, of));
    description::HostOptions options{.device = graph_device_};
    for (const auto& [name, memory] : bindings) options.bindings.emplace(name, memory.bytes());
    return description::HostGraph::create(std::move(of), std::move(table), std::move(options));
  }
  [[nodiscard]] std::function<void(const op::StreamCall&)> copies() const {
    return [&driver = device_->context()->driver()](const op::StreamCall& call) {
      const auto bytes = call.size() > 2 ? static_cast<std::size_t>(call.number(2))
                                         : static_cast<std::size_t>(call.shape(0)[0]) * sizeof(float);
      const auto result = driver.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(call.data<float>(1)),
                                                   reinterpret_cast<CUdeviceptr>(call.data<float>(0)), bytes,
                                                   static_cast<CUstream>(call.stream()));
      if (result != CUDA_SUCCESS) throw std::runtime_error("the copy was refused");
    };
  }

  [[nodiscard]] static std::vector<float> content(const description::HostGraph& graph,
                                                  std::string_view buffer) {
    const std::vector<std::byte> bytes = value_or_throw(graph.content(buffer));
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  /// The first element of "out" after a launch.
  [[nodiscard]] static float launched(description::HostGraph& graph) {
    static_cast<void>(value_or_throw(graph.launch()));
    return content(graph, "out")[0];
  }

  description::GraphDeviceRef graph_device_;
  std::filesystem::path folder_;
};

}  // namespace tessera::engine::fixture
