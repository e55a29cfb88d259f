// The launches of a program on memory that is known.
#pragma once

#include <span>
#include <vector>

#include "tessera/op/array.h"
#include "tessera/runtime/cuda/bound_launch.h"
#include "tessera/runtime/cuda/call_cache.h"

namespace tessera::runtime::cuda {

/// Where the memory of a program lies.
struct StepMemory {
  std::span<const op::Array> inputs, results;
  std::span<std::byte* const> scratch;
  std::byte* status = nullptr;  ///< one Status per check, side by side
};

/// Those that do something, in their order.
[[nodiscard]] std::vector<BoundLaunch> bound_launches(const ReadyProgram& ready, const StepMemory& memory);

}  // namespace tessera::runtime::cuda
