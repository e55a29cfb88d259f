#include "tessera/op/wide.h"

#include <array>
#include <cstring>

#include "tessera/ir/half.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// What each dtype stores, in the order of the enumeration.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t byte;
};

template <class W, class T>
W widen(T stored) {
  if constexpr (std::is_same_v<T, F16>) {
    return W(ir::f16_to_float(stored.bits));
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return W(ir::bf16_to_float(stored.bits));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return W(stored.byte != 0 ? 1 : 0);
  } else {
    return W(stored);
  }
}

/// Truncates towards zero, saturates, NaN becomes 0.
template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  // The largest value itself may not be a double; the next power of two always is.
  constexpr double limit = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  if (value >= limit) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

template <class T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, F16>) {
    return {ir::double_to_f16(value)};
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return {ir::double_to_bf16(value)};
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(value != 0)};
  } else if constexpr (std::is_integral_v<T>) {
    return saturate<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class T, class Int>
T narrow(Wrapping<Int> value) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return narrow<T>(static_cast<double>(value.v));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(value.v != 0)};
  } else {
    return static_cast<T>(value.v);
  }
}

template <class W, class T>
void load_as(const std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count, W* out) {
  const std::byte* at = data + offset * static_cast<std::int64_t>(sizeof(T));
  for (std::size_t i = 0; i < count; ++i, at += stride * static_cast<std::int64_t>(sizeof(T))) {
    T stored;
    std::memcpy(&stored, at, sizeof stored);
    out[i] = widen<W>(stored);
  }
}

template <class W, class T>
void store_as(std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count, const W* in) {
  std::byte* at = data + offset * static_cast<std::int64_t>(sizeof(T));
  for (std::size_t i = 0; i < count; ++i, at += stride * static_cast<std::int64_t>(sizeof(T))) {
    const T stored = narrow<T>(in[i]);
    std::memcpy(at, &stored, sizeof stored);
  }
}

template <class W, class... T>
struct Tables {
  static constexpr std::array<Loader<W>, sizeof...(T)> load{&load_as<W, T>...};
  static constexpr std::array<Storer<W>, sizeof...(T)> store{&store_as<W, T>...};
};
template <class W>
using AllTables = Tables<W, double, float, F16, Bf16, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
                         std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, Bool>;

}  // namespace

template <class W>
Loader<W> tessera::op::loader(Dtype dtype) {
  return AllTables<W>::load[static_cast<std::size_t>(dtype)];
}
template <class W>
Storer<W> tessera::op::storer(Dtype dtype) {
  return AllTables<W>::store[static_cast<std::size_t>(dtype)];
}

template Loader<double> tessera::op::loader<double>(Dtype);
template Loader<SignedWide> tessera::op::loader<SignedWide>(Dtype);
template Loader<UnsignedWide> tessera::op::loader<UnsignedWide>(Dtype);
template Storer<double> tessera::op::storer<double>(Dtype);
template Storer<SignedWide> tessera::op::storer<SignedWide>(Dtype);
template Storer<UnsignedWide> tessera::op::storer<UnsignedWide>(Dtype);
