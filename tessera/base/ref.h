// A counted pointer to an immutable object that keeps its own count.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace tessera {

/// T has `void retain() const` and `void release() const`; release frees the object when nobody holds it.
/// As thread-safe as those two are. Null only where a field is optional.
template <class T>
class Ref {
 public:
  using element_type = T;

  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* object) : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<const U*, const T*> Ref(const Ref<U>& other)
      : Ref(static_cast<const T*>(other.get())) {}
  template <class U>
  requires std::is_convertible_v<const U*, const T*> Ref(Ref<U>&& other)
  noexcept : object_(other.detach()) {}
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  [[nodiscard]] const T* get() const { return object_; }
  const T& operator*() const { return *object_; }
  const T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Identity, not content.
  template <class U>
  bool operator==(const Ref<U>& other) const {
    return static_cast<const void*>(object_) == static_cast<const void*>(other.get());
  }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }

  /// Gives up the pointer without releasing it.
  const T* detach() { return std::exchange(object_, nullptr); }

 private:
  const T* object_ = nullptr;
};

}  // namespace tessera
