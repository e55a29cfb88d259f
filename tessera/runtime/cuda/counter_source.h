// The kernel that begins a counter anew and remembers the most that was counted.
#pragma once

#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// `reset(counter)`, of two numbers: what was counted and the most of it before.
[[nodiscard]] SourceRef counter_reset_source();

}  // namespace tessera::runtime::cuda
