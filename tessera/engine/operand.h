// What a call is recorded on, and from where.
#pragma once

#include <cstdint>

#include "tessera/engine/node.h"

namespace tessera::engine {

/// Where a call stands in the program of the user.
struct Caller {
  const char* file = nullptr;
  std::uint32_t line = 0;
};

/// One operand: a node, or a number that takes the dtype of the tensors it meets.
struct Operand {
  Node* node = nullptr;
  ScalarBits scalar;
  bool is_float = false;  ///< of a number: written with a point

  static Operand of(Node* node) { return {node, {}, false}; }
  static Operand of(double value) { return {nullptr, ScalarBits::of_float(value), true}; }
  static Operand of(std::int64_t value) { return {nullptr, ScalarBits::of_integer(value), false}; }
};

}  // namespace tessera::engine
