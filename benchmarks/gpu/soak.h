// Updates of all tiers in a random order, each with its result checked by a formula.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "tessera/runtime/device.h"

namespace tessera::benchmarks {

/// Queues a copy in the memory of a device on one of its streams.
using CopyOnStream = std::function<void(void* to, const void* from, std::size_t bytes, void* stream)>;

/// That of the system's driver. Throws if there is none.
[[nodiscard]] CopyOnStream copy_of_driver();

/// Evaluates and launches `count` times: numbers, buffers, sizes and structures, products of a library,
/// captured calls, regions, kernels whose code changes, rows, and a description. Throws if a result is wrong,
/// if a tier does not come up (of some hundred updates), or if the memory in use grows. Gives one line: the
/// memory, and how often each tier came up. On devices that are no GPUs there are no kernels and
/// descriptions. Once per process: kernels have names for life.
[[nodiscard]] std::string soak(const std::shared_ptr<runtime::Device>& device, const CopyOnStream& copy,
                               int count);

}  // namespace tessera::benchmarks
