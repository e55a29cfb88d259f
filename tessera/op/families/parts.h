// Which elements slices and updates of them are about, for those who run or rewrite them.
#pragma once

#include "tessera/op/call_info.h"

namespace tessera::op {

/// What is taken of one axis: `count` indices from `start`, each `step` further. With a count of 0 the start
/// means nothing.
struct AxisPart {
  std::size_t axis = 0;
  Dim start;
  std::int64_t step = 1;
  Dim count;
};

/// The axes that a call of update_slice says something of; all of the others are replaced from end to end.
[[nodiscard]] Result<std::vector<AxisPart>> updated_axes(const CallInfo& call);

/// The elements of `x`, the layout of the first input or of the result, that a call of update_slice replaces.
/// Sizes are numbers.
[[nodiscard]] Result<Layout> updated_part(const CallInfo& call, Layout x);

}  // namespace tessera::op
