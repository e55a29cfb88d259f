// What the kernels that read indices have in common.
#pragma once

#include <string>

#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// The axes that a row of indices names, and where they lie in what is indexed.
struct NamedAxes {
  std::vector<IndexCheck::Axis> axes;
  op::Extents strides;          ///< of each axis in what is indexed
  bool has_rows = false;        ///< the last axis of the indices has the rows; else each index is one
  std::int64_t index_step = 0;  ///< from one index of a row to the next

  [[nodiscard]] op::Extents sizes() const;
};

/// `Index`, `D` (the indices of a row), `Status`, `report`, and
///   bool find(const Index* row, I step, const I* extent, const I* axis_step, I number, Status*, I& to)
/// which adds the place that a row names to `to`, or reports the index of row `number` that is outside and
/// says no.
[[nodiscard]] std::string index_text(const Operand& indices, std::size_t depth);

/// `I place_of(I at, const I* size, const I* step)` on the axes of a walk.
[[nodiscard]] std::string_view place_text();

/// Checks the indices alone: for calls that write nothing.
void write_index_check(ProgramWriter& program, const Operand& indices, const NamedAxes& named,
                       const Memory& status);

}  // namespace tessera::runtime::cuda
