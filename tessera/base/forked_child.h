// The child of a fork() of a process in which Tessera has threads, or has opened libraries that have some.
//
// The threads are not there in the child, and what they had locked stays locked for ever. So what could wait for
// them is an error in the child, and what would be destroyed stays as it is. The child may read values that are
// computed, end, and become another program.
#pragma once

#include <atomic>

#include "tessera/base/error.h"

namespace tessera {

/// Ask is_forked_child().
inline constinit std::atomic<bool> forked_child_flag{false};

/// Children of this process know from now on that they are. Called before the first thread is started.
void note_forks();

/// Whether this is such a child. Costs a load.
[[nodiscard]] inline bool is_forked_child() { return forked_child_flag.load(std::memory_order_relaxed); }

/// What such a child is told: what it may do.
[[nodiscard]] Error forked_child_error();
/// Throws it.
[[noreturn]] void throw_forked_child_error();
/// Throws it in such a child.
inline void check_no_forked_child() {
  if (is_forked_child()) [[unlikely]]
    throw_forked_child_error();
}

}  // namespace tessera
