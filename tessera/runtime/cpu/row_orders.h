// Ops that go along one axis in order: sorts, the first few of an order, the place of the largest or smallest
// element, running sums and products. Rows are shared out to threads.
#pragma once

#include "tessera/op/call_info.h"
#include "tessera/runtime/cpu/thread_pool.h"

namespace tessera::runtime::cpu {

/// Whether the call was one of them.
[[nodiscard]] Result<bool> run_row_orders(const op::CallInfo& call, std::span<const op::Array> inputs,
                                          std::span<const op::Array> results, ThreadPool& threads);

}  // namespace tessera::runtime::cpu
