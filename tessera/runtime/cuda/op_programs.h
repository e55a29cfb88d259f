// The ops that have programs of their own, by family: for op_source.cpp alone.
#pragma once

#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// Writes the launches of a call. Some result has elements, or there are indices to check.
using WriteOp = Result<void> (*)(const op::CallInfo& call, ProgramWriter& program);

// Parts and indices (part_source.cpp, moving_part_source.cpp, gather_source.cpp, gather_rows_source.cpp,
// scatter_source.cpp).
Result<void> write_concat(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_update_slice(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_slice_at(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_update_slice_at(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_gather(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_gather_elements(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_gather_nd(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_one_hot(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_scatter_elements(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_scatter_nd(const op::CallInfo& call, ProgramWriter& program);

// Along an axis (scan_source.cpp, nonzero_source.cpp, extreme_source.cpp, sort_source.cpp).
Result<void> write_cumsum(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_cumprod(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_nonzero(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_argmax(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_argmin(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_sort(const op::CallInfo& call, ProgramWriter& program);

// Windows (pool_source.cpp, conv_source.cpp).
Result<void> write_max_pool(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_avg_pool(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_avg_pool_gradient(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_conv(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_conv_transpose(const op::CallInfo& call, ProgramWriter& program);
Result<void> write_conv_weight_gradient(const op::CallInfo& call, ProgramWriter& program);

// Products (matmul_source.cpp).
Result<void> write_matmul(const op::CallInfo& call, ProgramWriter& program);

}  // namespace tessera::runtime::cuda
