// `matmul` of f64, i64 and u64.
#pragma once

#include "tessera/op/call_info.h"
#include "tessera/runtime/cpu/thread_pool.h"

namespace tessera::runtime::cpu {

/// Over all threads. Whether the call was one of them: operands of rank 1 are not.
[[nodiscard]] Result<bool> run_wide_matmul(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results, ThreadPool& threads);

}  // namespace tessera::runtime::cpu
