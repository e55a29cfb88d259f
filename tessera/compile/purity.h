// Whether a value depends on its operands alone, so that equal ones are one and unused ones can go.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::compile {

/// True for calls of ops of the catalogue that are not random, and for regions and calls of functions in
/// which everything is pure. An op that is not in the catalogue may do anything.
[[nodiscard]] bool is_pure(const ir::Expr& value);

}  // namespace tessera::compile
