// Where nodes live: in slots of a multiple of 64 bytes, cut from large blocks. Nodes made one after another
// lie one after another, and NodeTable can find the entry of a node by its address alone.
#pragma once

#include <cstddef>

namespace tessera::ir {

inline constexpr std::size_t node_slot_bytes = 64;

/// Memory for one node, aligned to node_slot_bytes. Any thread; no lock except when a thread's own stock runs
/// out.
[[nodiscard]] void* allocate_node(std::size_t bytes);
/// Any thread may free what another one allocated.
void free_node(void* memory, std::size_t bytes) noexcept;

}  // namespace tessera::ir
