// Checks what ir::verify cannot, since it does not know the ops: every call is one of a known op, and its
// targets have the types that the op gives.
#pragma once

#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::op {

/// All violations in the function and those below it, in the order of the text, inner functions first.
[[nodiscard]] std::vector<Error> check_calls(const ir::Function& function);

/// ir::verify and check_calls: all errors.
[[nodiscard]] std::vector<Error> validate(const ir::Node& root);

}  // namespace tessera::op
