// Ops that put elements elsewhere and compute nothing.
#pragma once

#include "tessera/op/call_info.h"
#include "tessera/runtime/cpu/thread_pool.h"

namespace tessera::runtime::cpu {

/// Runs `concat`, `slice_at` and updates of slices over all threads. Whether the call was one of them.
[[nodiscard]] Result<bool> run_moves(const op::CallInfo& call, std::span<const op::Array> inputs,
                                     std::span<const op::Array> results, ThreadPool& threads);

}  // namespace tessera::runtime::cpu
