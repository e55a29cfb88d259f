// How much memory the machine has.
#pragma once

#include <cstdint>

namespace tessera {

/// Bytes of memory in the machine, used or not. Any thread may ask; the first one asks the system.
[[nodiscard]] std::uint64_t machine_memory();

}  // namespace tessera
