// A batch norm by constants behind a convolution with constant weights goes into the weights and the bias:
// conv(x, w, b) * s + t is conv(x, w * s, b * s + t).
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// Needs FloatRules::rounding: the weights are rounded once more. f32 and f64 only, where that is within the
/// accuracy of a convolution.
[[nodiscard]] Result<ir::FunctionRef> fold_batch_norm(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
