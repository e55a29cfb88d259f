// Result<T>: a value or an Error. The shape of std::expected, which C++20 does not have.
//
//   Result<int> parse_axis(int axis, int rank);
//   Result<Shape> reduce(const Shape& s, int axis) {
//     const int a = TESSERA_TRY(parse_axis(axis, s.rank()));
//     …
//   }
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "tessera/base/check.h"
#include "tessera/base/error.h"

namespace tessera {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  /// From anything a T can be made of, so that `return some_derived_ref;` reads as it should.
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
      Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// The value. Taking it from a failed Result is a broken invariant (TESSERA_CHECK).
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  /// By value: `for (x : *f())` walks over what lives as long as the loop.
  T operator*() && { return std::move(value()); }
  T take() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const& {
    TESSERA_CHECK(!ok(), "error() of a Result that holds a value");
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    TESSERA_CHECK(!ok(), "error() of a Result that holds a value");
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  T& value() {
    TESSERA_CHECK(ok(), error_text());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    TESSERA_CHECK(ok(), error_text());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] std::string error_text() const {
    return "value of a failed Result: " + std::get_if<1>(&state_)->to_text();
  }

  std::variant<T, Error> state_;
};

/// A Result without a value: success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }
  void take() && { TESSERA_CHECK(ok(), "value of a failed Result: " + std::get_if<1>(&error_)->to_text()); }
  [[nodiscard]] const Error& error() const& {
    TESSERA_CHECK(!ok(), "error() of a successful Result");
    return *std::get_if<1>(&error_);
  }
  Error&& error() && {
    TESSERA_CHECK(!ok(), "error() of a successful Result");
    return std::move(*std::get_if<1>(&error_));
  }

 private:
  std::variant<std::monostate, Error> error_;
};

/// The gate from Result to the C++ face: the value, or the Error thrown as an Exception.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw Exception(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace tessera

#define TESSERA_INTERNAL_CAT2(a, b) a##b
#define TESSERA_INTERNAL_CAT(a, b) TESSERA_INTERNAL_CAT2(a, b)
#define TESSERA_INTERNAL_TRY(name, ...)             \
  __extension__({                                   \
    auto name = (__VA_ARGS__);                      \
    if (!name.ok()) return std::move(name).error(); \
    std::move(name).take();                         \
  })

/// `auto x = TESSERA_TRY(f());` is the value of f(), or returns its error to the caller. Also for
/// Result<void>. (The counter gives each use its own variable, so that one may stand inside another.)
#define TESSERA_TRY(...) TESSERA_INTERNAL_TRY(TESSERA_INTERNAL_CAT(tessera_try_, __COUNTER__), __VA_ARGS__)
