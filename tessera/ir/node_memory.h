// Where nodes live. NodeTable finds the entry of a node by its address alone, so nodes lie on multiples of
// their slot.
#pragma once

#include <cstddef>

#include "tessera/base/slot_memory.h"

namespace tessera::ir {

inline constexpr std::size_t node_slot_bytes = 64;

/// In whole slots.
constexpr std::size_t node_bytes(std::size_t bytes) {
  return (bytes + node_slot_bytes - 1) / node_slot_bytes * node_slot_bytes;
}

}  // namespace tessera::ir
