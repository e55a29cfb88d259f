#include "tessera/ir/integers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tessera/ir/compare_numbers.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// Wide enough for any operation on two 64-bit integers, signed or not, to be exact or right in its low bits.
__extension__ using Wide = __int128;

Wide wide(Integer integer) {
  return integer.dtype == Dtype::u64 ? static_cast<Wide>(static_cast<std::uint64_t>(integer.bits))
                                     : static_cast<Wide>(integer.bits);
}

/// Narrowed as a store does it: integers wrap, anything but 0 is true.
std::int64_t narrowed(Wide value, Dtype dtype) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size_of(dtype));
  const std::uint64_t high = static_cast<std::uint64_t>(value) << unused;
  return is_signed_integer(dtype) ? static_cast<std::int64_t>(high) >> unused
                                  : static_cast<std::int64_t>(high >> unused);
}

Wide multiply(Wide a, Wide b) {
  Wide out = 0;
  (void)__builtin_mul_overflow(a, b, &out);  // only of two u64, whose low bits are what counts
  return out;
}

Wide quotient(Wide a, Wide b) { return b == 0 ? 0 : a / b; }
Wide remainder(Wide a, Wide b) { return b == 0 ? a : a % b; }
bool rounds_up(Wide a, Wide b) { return remainder(a, b) != 0 && b != 0 && (a < 0) != (b < 0); }
Wide floor_quotient(Wide a, Wide b) { return quotient(a, b) - (rounds_up(a, b) ? 1 : 0); }
Wide floor_remainder(Wide a, Wide b) { return remainder(a, b) + (rounds_up(a, b) ? b : 0); }

/// A shift by a negative amount or by the width and more pushes everything out.
Wide shift_left(Wide a, Wide by) { return by < 0 || by > 63 ? 0 : a * (static_cast<Wide>(1) << by); }
Wide shift_right(Wide a, Wide by) { return by < 0 || by > 63 ? (a < 0 ? -1 : 0) : a >> by; }

std::optional<Wide> arithmetic(ScalarOpcode opcode, Wide a, Wide b) {
  switch (opcode) {
    case ScalarOpcode::add:
      return a + b;
    case ScalarOpcode::sub:
      return a - b;
    case ScalarOpcode::mul:
      return multiply(a, b);
    case ScalarOpcode::div:
      return quotient(a, b);
    case ScalarOpcode::fmod:
      return remainder(a, b);
    case ScalarOpcode::floor_div:
      return floor_quotient(a, b);
    case ScalarOpcode::floor_mod:
      return floor_remainder(a, b);
    case ScalarOpcode::min:
      return std::min(a, b);
    case ScalarOpcode::max:
      return std::max(a, b);
    case ScalarOpcode::neg:
      return -a;
    case ScalarOpcode::abs:
      return a < 0 ? -a : a;
    case ScalarOpcode::sign:
      return (a > 0 ? 1 : 0) - (a < 0 ? 1 : 0);
    case ScalarOpcode::bit_and:
      return a & b;
    case ScalarOpcode::bit_or:
      return a | b;
    case ScalarOpcode::bit_xor:
      return a ^ b;
    case ScalarOpcode::bit_not:
      return ~a;
    case ScalarOpcode::shl:
      return shift_left(a, b);
    case ScalarOpcode::shr:
      return shift_right(a, b);
    case ScalarOpcode::popcount:
      return std::popcount(static_cast<std::uint64_t>(a));
    default:
      return std::nullopt;
  }
}

/// A value in the low 64 bits, and whether it is exact as an i64.
struct Outcome {
  std::int64_t low = 0;
  bool is_exact = true;
};

/// A negative exponent gives what the exact result truncates to.
Outcome power(Wide base, Wide exponent) {
  if (exponent < 0) return {base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0};
  Outcome out{1};
  auto square = static_cast<std::int64_t>(base);
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0;) {
    if ((e & 1) != 0 && __builtin_mul_overflow(out.low, square, &out.low)) out.is_exact = false;
    e >>= 1;
    if (e != 0 && __builtin_mul_overflow(square, square, &square)) out.is_exact = false;
  }
  return out;
}

std::optional<Outcome> outcome(ScalarOpcode opcode, Wide a, Wide b) {
  if (opcode == ScalarOpcode::pow) return power(a, b);
  const auto value = arithmetic(opcode, a, b);
  if (!value) return std::nullopt;
  const auto low = static_cast<std::int64_t>(*value);
  return Outcome{low, low == *value};
}

}  // namespace

std::optional<bool> tessera::ir::compare_integers(ScalarOpcode opcode, Integer a, Integer b) {
  return compare_numbers(opcode, wide(a), wide(b));
}

std::optional<std::int64_t> tessera::ir::wrapped_integers(ScalarOpcode opcode, Integer a, Integer b) {
  if (opcode == ScalarOpcode::bit_not && a.dtype == Dtype::boolean) return a.bits == 0 ? 1 : 0;
  const auto value = outcome(opcode, wide(a), wide(b));
  return value ? std::optional(narrowed(value->low, a.dtype)) : std::nullopt;
}

std::optional<std::int64_t> tessera::ir::evaluate_integers(ScalarOpcode opcode, std::int64_t a,
                                                           std::int64_t b) {
  const auto value = outcome(opcode, a, b);
  return value && value->is_exact ? std::optional(value->low) : std::nullopt;
}

std::int64_t tessera::ir::convert_integer(Integer value, Dtype to) { return narrowed(wide(value), to); }

std::int64_t tessera::ir::integer_from_float(double value, Dtype dtype) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  const int bits = 8 * static_cast<int>(size_of(dtype)) - (is_signed_integer(dtype) ? 1 : 0);
  const Wide limit = static_cast<Wide>(1) << bits;
  const Wide lowest = is_signed_integer(dtype) ? -limit : 0;
  if (value >= std::ldexp(1.0, bits)) return narrowed(limit - 1, dtype);
  if (value <= static_cast<double>(lowest)) return narrowed(lowest, dtype);
  return narrowed(static_cast<Wide>(value), dtype);
}
