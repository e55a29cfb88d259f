// A vector for words that are written in bulk: room is asked for once for many, and clearing keeps it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace tessera::stream {

template <class T>
requires std::is_trivially_copyable_v<T>
class Buffer {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T* begin() const { return data_.get(); }
  [[nodiscard]] const T* end() const { return data_.get() + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  operator std::span<const T>() const { return {data_.get(), size_}; }

  void clear() { size_ = 0; }
  void push(T value) {
    if (size_ == capacity_) [[unlikely]]
      grow(1);
    data_[size_++] = value;
  }
  /// Takes the last away. REQUIRES that there is one.
  T pop() { return data_[--size_]; }
  /// Room for `count` more: they are written from the returned place on, then declared with end_at.
  T* make_room(std::size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      grow(count);
    return data_.get() + size_;
  }
  void end_at(const T* end) { size_ = static_cast<std::size_t>(end - data_.get()); }

 private:
  [[gnu::noinline]] void grow(std::size_t count) {
    const std::size_t capacity = std::max({size_ + count, capacity_ * 2, std::size_t{64}});
    auto bigger = std::make_unique_for_overwrite<T[]>(capacity);
    if (size_ > 0) std::memcpy(bigger.get(), data_.get(), size_ * sizeof(T));
    data_ = std::move(bigger);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace tessera::stream
