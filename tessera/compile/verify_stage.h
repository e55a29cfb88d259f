// Checks what a pass made of a program.
#pragma once

#include "tessera/compile/pipeline.h"

namespace tessera::compiler {

/// The function is valid; its parts have every statement once, and read nothing of a later part; the plan is
/// as those that are read from files must be (plan/verify.h); a value lies where no other lies while it
/// lives. What is wrong is an internal error of the pass.
[[nodiscard]] Result<void> verify_after(const Pass& pass, const Stage& stage);

}  // namespace tessera::compiler
