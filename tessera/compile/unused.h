// What a valid function says in vain: warnings for those who wrote it.
#pragma once

#include <vector>

#include "tessera/compile/pass.h"

namespace tessera::compiler {

/// Inputs that nothing reads, and statements that nothing needs and that may go, with their lines. Of bodies,
/// only what goes with them.
[[nodiscard]] std::vector<Note> find_unused(const ir::FunctionRef& function);

}  // namespace tessera::compiler
