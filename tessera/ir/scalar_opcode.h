// The operations of scalar expressions: dimensions and the bodies of kernels are written with these. One table
// (scalar_opcodes.inc) has what everybody asks about them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/ir/dtype.h"

namespace tessera::ir {

/// Integer arithmetic wraps. `div` truncates on integers, `floor_div` and `floor_mod` round down; dividing by
/// zero gives 0 (and the remainder is the dividend), so that no expression can trap. On booleans `bit_not` is
/// logical.
enum class ScalarOpcode : std::uint8_t {
#define TESSERA_OPCODE(name, symbol, arity, precedence, work, traits) name,
#include "tessera/ir/scalar_opcodes.inc"
};

inline constexpr std::size_t scalar_opcode_count = static_cast<std::size_t>(ScalarOpcode::fma) + 1;

namespace opcode_trait {
enum OpcodeTrait : std::uint8_t {
  plain = 0,
  commutative = 1,
  boolean = 2,       ///< gives truth: comparisons and tests
  reduces = 4,       ///< associative: joins the values of a reduction
  divides = 8,       ///< the right operand is a divisor
  jumps = 16,        ///< where its operand moves by a rounding
  of_booleans = 32,  ///< booleans have it; all else they do as the numbers 0 and 1
  in_c = 64,         ///< C has a function of the name
};
}  // namespace opcode_trait

struct ScalarOpcodeInfo {
  std::string_view name;    ///< "add", "exp"
  std::string_view symbol;  ///< "+" for infix ones, else empty
  std::uint8_t arity = 0;
  std::uint8_t precedence = 0;  ///< of infix ones: larger binds tighter
  double work = 1;              ///< about so many additions, where code is generated
  std::uint8_t traits = 0;
  bool commutative = false;
  bool makes_boolean = false;

  [[nodiscard]] constexpr bool has(opcode_trait::OpcodeTrait trait) const { return (traits & trait) != 0; }
};

namespace detail {
using namespace opcode_trait;
constexpr ScalarOpcodeInfo opcode_row(std::string_view name, std::string_view symbol, int arity,
                                      int precedence, double work, int traits) {
  return {name,
          symbol,
          static_cast<std::uint8_t>(arity),
          static_cast<std::uint8_t>(precedence),
          work,
          static_cast<std::uint8_t>(traits),
          (traits & opcode_trait::commutative) != 0,
          (traits & boolean) != 0};
}
inline constexpr ScalarOpcodeInfo opcode_table[] = {
#define TESSERA_OPCODE(name, symbol, arity, precedence, work, traits) \
  opcode_row(#name, symbol, arity, precedence, work, traits),
#include "tessera/ir/scalar_opcodes.inc"
};
}  // namespace detail

[[nodiscard]] constexpr const ScalarOpcodeInfo& info(ScalarOpcode opcode) {
  return detail::opcode_table[static_cast<std::size_t>(opcode)];
}
[[nodiscard]] constexpr std::string_view to_string(ScalarOpcode opcode) { return info(opcode).name; }
[[nodiscard]] constexpr bool is_comparison(ScalarOpcode opcode) {
  return info(opcode).makes_boolean && info(opcode).arity == 2;
}
/// The inverse of to_string.
[[nodiscard]] std::optional<ScalarOpcode> parse_scalar_opcode(std::string_view name);

}  // namespace tessera::ir
