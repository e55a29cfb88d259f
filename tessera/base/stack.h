// A stack for walks that may go millions of levels deep: it grows without moving what it holds, and in large
// pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "tessera/base/large_pages.h"

namespace tessera {

/// T is trivially copyable and destructible: what is popped is forgotten.
template <class T>
requires std::is_trivially_copyable_v<T>
class Stack {
 public:
  [[nodiscard]] bool empty() const { return top_ == begin_ && current_ == 0; }
  [[nodiscard]] T& back() { return top_[-1]; }
  void push(const T& value) {
    if (top_ == end_) [[unlikely]]
      next_block();
    *top_++ = value;
  }
  T pop() {
    const T value = *--top_;
    if (top_ == begin_ && current_ > 0) [[unlikely]]
      previous_block();
    return value;
  }
  /// The value `depth` below the top, if it is cheap to look at; null if not. For looking ahead.
  [[nodiscard]] const T* peek(std::size_t depth) const {
    return static_cast<std::size_t>(top_ - begin_) > depth ? top_ - 1 - depth : nullptr;
  }
  /// Calls f(value) from the bottom to the top.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i <= current_ && i < blocks_.size(); ++i) {
      const Block& block = blocks_[i];
      const T* end = i == current_ ? top_ : block.data() + block.capacity;
      for (const T* at = block.data(); at != end; ++at) f(*at);
    }
  }

 private:
  struct Block {
    MemoryBlock memory;
    std::size_t capacity = 0;
    [[nodiscard]] T* data() const { return reinterpret_cast<T*>(memory.get()); }
  };

  void next_block() {
    if (begin_ != nullptr) ++current_;
    if (current_ == blocks_.size()) {
      constexpr std::size_t largest = 8 * large_page_bytes / sizeof(T);
      const std::size_t capacity = blocks_.empty() ? std::max<std::size_t>(1, 4096 / sizeof(T))
                                                   : std::min(blocks_.back().capacity * 8, largest);
      blocks_.push_back({allocate_block(capacity * sizeof(T)), capacity});
    }
    use(blocks_[current_]);
    top_ = begin_;
  }
  void previous_block() {
    use(blocks_[--current_]);
    top_ = end_;
  }
  void use(const Block& block) {
    begin_ = block.data();
    end_ = begin_ + block.capacity;
  }

  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  T* begin_ = nullptr;
  T* top_ = nullptr;
  T* end_ = nullptr;
};

}  // namespace tessera
