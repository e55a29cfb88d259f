// Elements in CUDA C++: their types, and the small functions that sources compute with. Everything is spelled
// out, so that no header is needed.
#pragma once

#include <string>
#include <string_view>

#include "tessera/ir/dtype.h"

namespace tessera::runtime::cuda {

/// A float of two bytes.
[[nodiscard]] constexpr bool is_half(ir::Dtype dtype) {
  return dtype == ir::Dtype::f16 || dtype == ir::Dtype::bf16;
}

/// The type that holds an element: "float", "unsigned short" for f16, …
[[nodiscard]] std::string_view stored_type(ir::Dtype dtype);

enum class Precision : std::uint8_t {
  wide,    ///< double, or 64-bit integers, as the reference
  narrow,  ///< float for what is no f64, 32-bit integers for what is not of 64 bits; wrapping comes out the
           ///< same
};

/// `T`, the type of an element, and `W`, what is computed in; `W widen(T)`, `T narrow(W)`, and on W `add`,
/// `mul`, `maximum`, `minimum`: integers wrap, NaN is kept.
[[nodiscard]] std::string element_text(ir::Dtype dtype, Precision precision);

/// `T`, unsigned `K`, and `K key_of(T)`, which is in the order of the elements: NaN is greater than all, -0
/// and 0 are one. `K reverse_key_of(T)` is in the opposite order, but for NaN, which is greatest here too.
[[nodiscard]] std::string key_text(ir::Dtype dtype);
/// Bytes of K.
[[nodiscard]] std::int64_t key_bytes(ir::Dtype dtype);

/// `T` of so many bytes, to be copied.
[[nodiscard]] std::string unit_text(std::int64_t bytes);

/// `Status` and `report(Status*, number, index)`: what kernels that check indices do (launch.h).
[[nodiscard]] std::string_view status_text();

}  // namespace tessera::runtime::cuda
