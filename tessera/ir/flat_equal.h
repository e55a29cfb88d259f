// Structural equality of what binds no variables: expressions and types. The walk is free in its order, so
// that it can wait for the memory of many nodes at a time; structural_equal.cpp has the rest.
#pragma once

#include <cstdint>

#include "tessera/ir/node.h"
#include "tessera/ir/structural_mode.h"

namespace tessera::ir {

enum class FlatAnswer : std::uint8_t {
  equal,
  different,
  /// There are functions below, or sizes that are expressions: the answer takes more than this.
  unknown,
};

[[nodiscard]] FlatAnswer flat_equal(const Node& a, const Node& b, CompareMode mode);

}  // namespace tessera::ir
