// Index tensors, as the ops that take them see them: of i32 or i64, negative ones count from the end, and one
// outside its axis is an error, never a wrong read.
#pragma once

#include <span>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// An axis that indices are about.
struct IndexedAxis {
  std::size_t axis = 0;
  std::int64_t size = 0;
};

/// All elements of `indices` in row-major order, each in 0 .. size - 1 of its axis: element i is about
/// `axes[i % axes.size()]`. The error names the first index that is outside.
[[nodiscard]] Result<std::vector<std::int64_t>> resolve_indices(const CallInfo& call, const Array& indices,
                                                                std::span<const IndexedAxis> axes);

/// Checks the shapes of gather_elements and scatter_elements: 'indices' has the rank of 'x' and is no larger,
/// except along the axis of the call.
[[nodiscard]] Result<void> check_element_indices(const CallInfo& call);

/// How gather_nd and scatter_nd read their shapes: each row of the last axis of 'indices' names a part of
/// 'x'.
struct IndexRows {
  std::size_t depth = 0;  ///< how many axes a row names
  Shape rows;             ///< the shape of 'indices' without its last axis
  Shape part;             ///< the shape of what a row names
};
[[nodiscard]] Result<IndexRows> index_rows(const CallInfo& call, std::size_t batch_axes);

}  // namespace tessera::op
