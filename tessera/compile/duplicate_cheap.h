// Cheap values that several statements use are computed for each of them: a cover is a partition, and so each
// tile can have its own copy. Runs last: merge_equal would undo it.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// Cheap: views, tensors made from numbers, and element-wise ops with a short formula of one tensor.
/// PassOptions::most_copies and most_cheap bound the growth.
[[nodiscard]] Result<ir::FunctionRef> duplicate_cheap(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
