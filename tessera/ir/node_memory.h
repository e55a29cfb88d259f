// Where nodes live. NodeTable finds the entry of a node by its address alone, so nodes lie on multiples of
// their slot.
#pragma once

#include <cstddef>

#include "tessera/base/slot_memory.h"

namespace tessera::ir {

inline constexpr std::size_t node_slot_bytes = 64;
using NodeMemory = SlotMemory<node_slot_bytes, 8>;

}  // namespace tessera::ir
