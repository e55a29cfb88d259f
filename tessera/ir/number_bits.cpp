#include "tessera/ir/number_bits.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace tessera;
using namespace tessera::ir;

namespace {

/// REQUIRES no NaN.
template <class Integer>
Integer nearest(double value) {
  using Limits = std::numeric_limits<Integer>;
  const double end = std::ldexp(1.0, Limits::digits);  // the first number beyond, which a double has
  if (value >= end) return Limits::max();
  return value <= static_cast<double>(Limits::min()) ? Limits::min() : static_cast<Integer>(value);
}

}  // namespace

std::uint64_t tessera::ir::number_bits(double value, Dtype dtype) {
  if (is_float(dtype)) return std::bit_cast<std::uint64_t>(value);
  if (std::isnan(value)) return 0;
  return dtype == Dtype::u64 ? nearest<std::uint64_t>(value)
                             : static_cast<std::uint64_t>(nearest<std::int64_t>(value));
}

double tessera::ir::number_of(std::uint64_t bits, Dtype dtype) {
  if (is_float(dtype)) return std::bit_cast<double>(bits);
  return dtype == Dtype::u64 ? static_cast<double>(bits)
                             : static_cast<double>(static_cast<std::int64_t>(bits));
}
