// Counts what this program allocates: malloc, mmap and operator new are replaced by ones that count. What
// oneDNN allocates inside a call of a primitive (a table of the arguments) is counted apart: its interface
// has no way around that. So is what OpenMP and the loader make for a thread when it first has a part in such
// a call, which may be late.
#pragma once

#include <functional>

namespace tessera::fixture {

/// So far.
[[nodiscard]] long allocation_count();

/// Those of the calls 100 to 1,100 on the CPU.
[[nodiscard]] long settled_allocations(const std::function<void(int)>& evaluate);

}  // namespace tessera::fixture
