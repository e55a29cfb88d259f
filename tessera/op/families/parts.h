// Where update_slice writes, for those who run it.
#pragma once

#include "tessera/op/call_info.h"

namespace tessera::op {

/// The elements of `x`, the layout of the first input or of the result, that a call of update_slice replaces.
/// Sizes are numbers.
[[nodiscard]] Result<Layout> updated_part(const CallInfo& call, Layout x);

}  // namespace tessera::op
