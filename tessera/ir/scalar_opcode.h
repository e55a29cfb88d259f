// The operations of scalar expressions: dimensions and the bodies of kernels are written with these.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/ir/dtype.h"

namespace tessera::ir {

/// Integer arithmetic wraps. `div` truncates on integers, `floor_div` and `floor_mod` round down; dividing by
/// zero gives 0 (and the remainder is the dividend), so that no expression can trap. On booleans `bit_not` is
/// logical.
enum class ScalarOpcode : std::uint8_t {
  // infix
  add,
  sub,
  mul,
  div,
  floor_div,
  floor_mod,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  // functions of two
  min,
  max,
  pow,
  fmod,
  atan2,
  copysign,
  // functions of one
  neg,
  abs,
  sign,
  bit_not,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  erfc,
  floor,
  ceil,
  round,
  trunc,
  is_nan,
  is_inf,
  popcount,
  // cast(x), bitcast(x): to the dtype in front; select(c, a, b), fma(a, b, c)
  cast,
  bitcast,
  select,
  fma,
};

inline constexpr std::size_t scalar_opcode_count = static_cast<std::size_t>(ScalarOpcode::fma) + 1;

struct ScalarOpcodeInfo {
  std::string_view name;    ///< "add", "exp"
  std::string_view symbol;  ///< "+" for infix ones, else empty
  std::uint8_t arity;
  std::uint8_t precedence;  ///< of infix ones: larger binds tighter
  bool commutative;
  bool makes_boolean;  ///< comparisons and tests
};

[[nodiscard]] const ScalarOpcodeInfo& info(ScalarOpcode opcode);
[[nodiscard]] inline std::string_view to_string(ScalarOpcode opcode) { return info(opcode).name; }
/// The inverse of to_string.
[[nodiscard]] std::optional<ScalarOpcode> parse_scalar_opcode(std::string_view name);

}  // namespace tessera::ir
