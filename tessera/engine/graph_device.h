// Graph descriptions on a device with memory of its own: kernels from files, library calls that are captured.
//
//   const auto device = TESSERA_TRY(make_graph_device(*find_device("cuda:0")));
//   KernelTable kernels;
//   add_stream_capture(kernels, "fft", [](const op::StreamCall& call) { queue_fft(call); });
//   TESSERA_TRY(add_kernel_files(kernels, description));
//   auto graph = HostGraph::create(description, kernels, {.device = device});
#pragma once

#include <functional>

#include "tessera/describe/description.h"
#include "tessera/describe/graph_device.h"
#include "tessera/describe/kernels.h"
#include "tessera/op/device_call.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// Fails if the device computes in host memory.
[[nodiscard]] Result<description::GraphDeviceRef> make_graph_device(std::shared_ptr<runtime::Device> device);

/// Adds the kernels of the nodes that name a file. Files are looked at in every launch; if new code does not
/// compile, the kernel as it was goes on. A kernel is given the pins and numbers of its node in their order;
/// for a pin that appends: the rows, the address of an unsigned long long that counts them, and the capacity,
/// an unsigned long long; for a pin that is not required and has no buffer: null. Fails if two nodes mean
/// different files by one name.
[[nodiscard]] Result<void> add_kernel_files(description::KernelTable& to, const description::Description& of);

/// Adds a capture: what the function queues on the stream. Its arguments are as those of kernels, without
/// capacities; a number in device memory is an array of one f64.
void add_stream_capture(description::KernelTable& to, std::string name,
                        std::function<void(const op::StreamCall&)> function);

}  // namespace tessera::engine
