// What the rules of an op see of a value: its dtype and its shape, which may be symbolic.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/check.h"
#include "tessera/ir/dim.h"
#include "tessera/op/array.h"

namespace tessera::op {

/// Of every tensor.
inline constexpr std::size_t max_rank = 16;

using ir::Dim;
using ir::Shape;

struct ValueType {
  Dtype dtype = Dtype::f32;
  Shape shape;

  bool operator==(const ValueType&) const = default;
  [[nodiscard]] std::size_t rank() const { return shape.size(); }
};

using ValueTypes = std::vector<ValueType>;

/// "f32[64, N]"
[[nodiscard]] inline std::string to_text(const ValueType& type) {
  return cat(type.dtype, ir::to_text(type.shape));
}
inline void append_text(std::string& out, const ValueType& type) { out += to_text(type); }
using ir::append_text;

/// The numbers of a shape. REQUIRES that all sizes are numbers.
[[nodiscard]] inline Extents extents_of(const Shape& shape) {
  const auto numbers = ir::constant_shape(shape);
  TESSERA_CHECK(numbers.has_value(), "a layout needs numbers");
  return *numbers;
}

/// A set of dtypes.
class DtypeSet {
 public:
  constexpr DtypeSet() = default;
  constexpr DtypeSet(std::initializer_list<Dtype> dtypes) {
    for (Dtype d : dtypes) bits_ |= bit(d);
  }
  [[nodiscard]] constexpr bool contains(Dtype d) const { return (bits_ & bit(d)) != 0; }
  friend constexpr DtypeSet operator|(DtypeSet a, DtypeSet b) { return DtypeSet(a.bits_ | b.bits_); }
  constexpr bool operator==(const DtypeSet&) const = default;

 private:
  constexpr explicit DtypeSet(unsigned bits) : bits_(bits) {}
  static constexpr unsigned bit(Dtype d) { return 1U << static_cast<unsigned>(d); }
  unsigned bits_ = 0;
};

inline constexpr DtypeSet float_dtypes{Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};
inline constexpr DtypeSet integer_dtypes{Dtype::i64, Dtype::i32, Dtype::i16, Dtype::i8,
                                         Dtype::u8,  Dtype::u16, Dtype::u32, Dtype::u64};
inline constexpr DtypeSet bool_dtypes{Dtype::boolean};
inline constexpr DtypeSet number_dtypes = float_dtypes | integer_dtypes;
inline constexpr DtypeSet all_dtypes = number_dtypes | bool_dtypes;
inline constexpr DtypeSet index_dtypes{Dtype::i64, Dtype::i32};

}  // namespace tessera::op
