// A vector whose first N elements live in the object itself. Most lists in a graph (inputs, dims, results)
// have at most four elements; they then cost no allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace tessera {

template <class T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  explicit SmallVector(std::size_t count, const T& value = T()) {
    reserve(count);
    for (std::size_t i = 0; i < count; ++i) push_back(value);
  }
  template <std::input_iterator It>
  SmallVector(It first, It last) {
    if constexpr (std::forward_iterator<It>) reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) push_back(*first);
  }
  explicit SmallVector(std::span<const T> values) : SmallVector(values.begin(), values.end()) {}
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() { reset(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) *this = SmallVector(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  iterator begin() { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void reserve(std::size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<Args>(args)...);  // the arguments may live in the storage that is about to move
      grow(size_ + 1);
      return *std::construct_at(data_ + size_++, std::move(value));
    }
    return *std::construct_at(data_ + size_++, std::forward<Args>(args)...);
  }
  void pop_back() { std::destroy_at(data_ + --size_); }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void resize(std::size_t count, const T& value = T()) {
    while (size_ > count) pop_back();
    reserve(count);
    while (size_ < count) push_back(value);
  }
  iterator insert(const_iterator before, T value) {
    const auto at = static_cast<std::size_t>(before - data_);
    push_back(std::move(value));
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  iterator erase(const_iterator position) {
    T* at = data_ + (position - data_);
    std::move(at + 1, data_ + size_, at);
    pop_back();
    return at;
  }

  bool operator==(const SmallVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  [[nodiscard]] bool is_inline() const { return data_ == inline_data(); }
  T* inline_data() { return reinterpret_cast<T*>(storage_); }
  const T* inline_data() const { return reinterpret_cast<const T*>(storage_); }

  void grow(std::size_t wanted) {
    const std::size_t capacity = std::max<std::size_t>(wanted, capacity_ * 2);
    T* bigger = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, bigger);
    std::destroy_n(data_, size_);
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = bigger;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  /// Moves the elements in. REQUIRES this is empty and inline.
  void take(SmallVector& other) {
    if (other.is_inline()) {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
      return;
    }
    data_ = std::exchange(other.data_, other.inline_data());
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
  }
  void reset() {
    clear();
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
  }

  T* data_ = inline_data();
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  alignas(T) std::byte storage_[sizeof(T) * (N == 0 ? 1 : N)];
};

}  // namespace tessera
