// Kernels that read their numbers from memory: one copy changes all of them, however many kernels there are.
#pragma once

#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// The source of a kernel that is given addresses where this one is given numbers; null if it has another
/// form than generated kernels have. REQUIRES that the launch is a kernel.
[[nodiscard]] SourceRef source_with_stored_numbers(const Launch& launch);

}  // namespace tessera::runtime::cuda
