#include "tessera/base/arena.h"

#include <algorithm>

using namespace tessera;

void* Arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
  // Blocks grow with the arena, so that a large run needs few of them.
  const std::size_t grown = std::min(reserved_bytes_, 8 * large_page_bytes);
  const std::size_t size = std::max({bytes + alignment, block_bytes_, grown});
  blocks_.push_back(allocate_block(size));
  reserved_bytes_ += size;
  cursor_ = blocks_.back().get();
  limit_ = cursor_ + size;
  std::byte* at = align(cursor_, alignment);
  cursor_ = at + bytes;
  return at;
}

void Arena::clear() {
  blocks_.clear();
  cursor_ = limit_ = nullptr;
  reserved_bytes_ = 0;
}
