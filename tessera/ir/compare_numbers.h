// The comparisons among scalar operations, of any kind of number.
#pragma once

#include <optional>

#include "tessera/ir/scalar_opcode.h"

namespace tessera::ir {

/// The answer; nothing if the opcode is no comparison.
template <class Number>
[[nodiscard]] std::optional<bool> compare_numbers(ScalarOpcode opcode, Number a, Number b) {
  switch (opcode) {
    case ScalarOpcode::eq:
      return a == b;
    case ScalarOpcode::ne:
      return a != b;
    case ScalarOpcode::lt:
      return a < b;
    case ScalarOpcode::le:
      return a <= b;
    case ScalarOpcode::gt:
      return a > b;
    case ScalarOpcode::ge:
      return a >= b;
    default:
      return std::nullopt;
  }
}

}  // namespace tessera::ir
