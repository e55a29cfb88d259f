// Casts that change nothing, and casts of casts that are one.
#pragma once

#include "tessera/compile/function_draft.h"

namespace tessera::compile {

/// Whether every value of `from` is a value of `to`.
[[nodiscard]] bool is_lossless(ir::Dtype from, ir::Dtype to);

/// What a cast is simpler as, its operand or another cast written into the draft; null if it is no cast or
/// cannot be simpler.
[[nodiscard]] ir::ExprRef simpler_cast(const ir::Call& call, FunctionDraft& draft);

}  // namespace tessera::compile
