// The loops of what has no vector form: by the reference's own formulas, element by element.
#pragma once

#include "tessera/kernel/block_loops.h"

namespace tessera::kernel {

/// Fills the entries that are empty.
void add_slow_loops(LoopTable& table);

}  // namespace tessera::kernel
