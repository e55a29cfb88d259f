#include "tessera/ir/scalar_opcode.h"

#include <array>

using namespace tessera::ir;

namespace {

constexpr ScalarOpcodeInfo infix(std::string_view name, std::string_view symbol, int precedence,
                                 bool commutative = false) {
  return {name, symbol, 2, static_cast<std::uint8_t>(precedence), commutative, false};
}
constexpr ScalarOpcodeInfo compare(std::string_view name, std::string_view symbol, bool commutative = false) {
  return {name, symbol, 2, 4, commutative, true};
}
constexpr ScalarOpcodeInfo function(std::string_view name, int arity, bool commutative = false) {
  return {name, "", static_cast<std::uint8_t>(arity), 0, commutative, false};
}
constexpr ScalarOpcodeInfo test(std::string_view name) { return {name, "", 1, 0, false, true}; }

// In the order of the enumeration.
constexpr std::array<ScalarOpcodeInfo, scalar_opcode_count> opcode_table{infix("add", "+", 6, true),
                                                                         infix("sub", "-", 6),
                                                                         infix("mul", "*", 7, true),
                                                                         infix("div", "/", 7),
                                                                         infix("floor_div", "//", 7),
                                                                         infix("floor_mod", "%", 7),
                                                                         compare("eq", "==", true),
                                                                         compare("ne", "!=", true),
                                                                         compare("lt", "<"),
                                                                         compare("le", "<="),
                                                                         compare("gt", ">"),
                                                                         compare("ge", ">="),
                                                                         infix("bit_and", "&", 3, true),
                                                                         infix("bit_or", "|", 1, true),
                                                                         infix("bit_xor", "^", 2, true),
                                                                         infix("shl", "<<", 5),
                                                                         infix("shr", ">>", 5),
                                                                         function("min", 2, true),
                                                                         function("max", 2, true),
                                                                         function("pow", 2),
                                                                         function("fmod", 2),
                                                                         function("atan2", 2),
                                                                         function("copysign", 2),
                                                                         function("neg", 1),
                                                                         function("abs", 1),
                                                                         function("sign", 1),
                                                                         function("bit_not", 1),
                                                                         function("exp", 1),
                                                                         function("exp2", 1),
                                                                         function("expm1", 1),
                                                                         function("log", 1),
                                                                         function("log2", 1),
                                                                         function("log1p", 1),
                                                                         function("sqrt", 1),
                                                                         function("rsqrt", 1),
                                                                         function("sin", 1),
                                                                         function("cos", 1),
                                                                         function("tan", 1),
                                                                         function("asin", 1),
                                                                         function("acos", 1),
                                                                         function("atan", 1),
                                                                         function("sinh", 1),
                                                                         function("cosh", 1),
                                                                         function("tanh", 1),
                                                                         function("asinh", 1),
                                                                         function("acosh", 1),
                                                                         function("atanh", 1),
                                                                         function("erf", 1),
                                                                         function("erfc", 1),
                                                                         function("floor", 1),
                                                                         function("ceil", 1),
                                                                         function("round", 1),
                                                                         function("trunc", 1),
                                                                         test("is_nan"),
                                                                         test("is_inf"),
                                                                         function("popcount", 1),
                                                                         function("cast", 1),
                                                                         function("bitcast", 1),
                                                                         function("select", 3),
                                                                         function("fma", 3)};
static_assert(opcode_table.back().name == "fma" && opcode_table[17].name == "min");

}  // namespace

const ScalarOpcodeInfo& tessera::ir::info(ScalarOpcode opcode) {
  return opcode_table[static_cast<std::size_t>(opcode)];
}

std::optional<ScalarOpcode> tessera::ir::parse_scalar_opcode(std::string_view name) {
  for (std::size_t i = 0; i < opcode_table.size(); ++i)
    if (opcode_table[i].name == name) return static_cast<ScalarOpcode>(i);
  return std::nullopt;
}
