// The types the reference computes in: double for floats, 64-bit integers that wrap for integers and
// booleans. What a tensor stores is widened when it is read and narrowed when it is written.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/ir/dtype.h"

namespace tessera::op {

using ir::Dtype;

/// A 64-bit integer whose arithmetic wraps and whose division never traps: by zero it gives 0.
template <class Int>
struct Wrapping {
  using Unsigned = std::uint64_t;
  Int v = 0;

  constexpr Wrapping() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Wrapping(T value) : v(static_cast<Int>(value)) {}

  constexpr bool operator==(const Wrapping&) const = default;
  constexpr auto operator<=>(const Wrapping&) const = default;
  friend constexpr Wrapping operator+(Wrapping a, Wrapping b) { return wrap(bits(a) + bits(b)); }
  friend constexpr Wrapping operator-(Wrapping a, Wrapping b) { return wrap(bits(a) - bits(b)); }
  friend constexpr Wrapping operator*(Wrapping a, Wrapping b) { return wrap(bits(a) * bits(b)); }
  friend constexpr Wrapping operator-(Wrapping a) { return wrap(0 - bits(a)); }
  /// Truncates; by zero gives 0, the most negative by -1 wraps.
  friend constexpr Wrapping operator/(Wrapping a, Wrapping b) {
    if (b.v == 0) return 0;
    if (is_minus_one(b)) return -a;
    return static_cast<Int>(a.v / b.v);
  }
  /// a - (a / b) * b; by zero gives a.
  friend constexpr Wrapping operator%(Wrapping a, Wrapping b) {
    if (b.v == 0) return a;
    if (is_minus_one(b)) return 0;
    return static_cast<Int>(a.v % b.v);
  }
  friend constexpr Wrapping operator&(Wrapping a, Wrapping b) { return static_cast<Int>(a.v & b.v); }
  friend constexpr Wrapping operator|(Wrapping a, Wrapping b) { return static_cast<Int>(a.v | b.v); }
  friend constexpr Wrapping operator^(Wrapping a, Wrapping b) { return static_cast<Int>(a.v ^ b.v); }
  friend constexpr Wrapping operator~(Wrapping a) { return static_cast<Int>(~a.v); }

 private:
  static constexpr Unsigned bits(Wrapping a) { return static_cast<Unsigned>(a.v); }
  static constexpr Wrapping wrap(Unsigned value) { return static_cast<Int>(value); }
  static constexpr bool is_minus_one(Wrapping a) {
    return std::is_signed_v<Int> && a.v == static_cast<Int>(-1);
  }
};

using SignedWide = Wrapping<std::int64_t>;
using UnsignedWide = Wrapping<std::uint64_t>;

/// Calls `f((W*)nullptr)` with the wide type of a dtype.
template <class F>
decltype(auto) visit_wide(Dtype dtype, F&& f) {
  if (ir::is_float(dtype)) return f(static_cast<double*>(nullptr));
  if (dtype == Dtype::u64) return f(static_cast<UnsignedWide*>(nullptr));
  return f(static_cast<SignedWide*>(nullptr));
}

/// Reads `count` elements from `data`, the first at element `offset`, each `stride` elements further.
template <class W>
using Loader = void (*)(const std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count,
                        W* out);
/// Writes them. Floats become integers by truncation, saturating, NaN 0; integers wrap; anything but 0 is
/// true.
template <class W>
using Storer = void (*)(std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count,
                        const W* in);

/// The loader and storer of a dtype. Defined for double, SignedWide and UnsignedWide.
template <class W>
[[nodiscard]] Loader<W> loader(Dtype dtype);
template <class W>
[[nodiscard]] Storer<W> storer(Dtype dtype);

}  // namespace tessera::op
