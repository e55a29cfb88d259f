// Which values are cheaper to compute again than to store: what the cards say, no list of ops.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::compile {

/// Views, tensors made from numbers, and element-wise ops of one tensor, where the formula is a few steps
/// without elementary functions. One result, pure.
[[nodiscard]] bool is_cheap(const ir::Assign& statement);

}  // namespace tessera::compile
