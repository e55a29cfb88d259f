// Regions and functions of a plan on a device: their calls run there, which of them comes next is decided on
// the host. Values of one element are read back for that; all others stay where they are.
#pragma once

#include <span>

#include "tessera/ir/function.h"
#include "tessera/runtime/cuda/cuda_device.h"

namespace tessera::runtime::cuda {

struct RegionLaunch {
  std::span<const op::Array> inputs;          ///< in the device's memory
  std::span<const op::Array> results;         ///< without gaps
  std::span<const std::uint64_t> parameters;  ///< by slot, as ir::number_bits
  std::span<const std::int64_t> sizes;        ///< of the function's symbols
};

/// Returns when everything is queued.
[[nodiscard]] Result<void> run_region(const ir::Function& function, const RegionLaunch& launch,
                                      CudaDevice& device, MemoryPool& pool);

}  // namespace tessera::runtime::cuda
