// Shape rules of parameters: a small language for the shape of a value in terms of the inputs of its node.
//
//   rule    = "same" [ "(" input ")" ]                       the shape of an input; without a number, the first
//           | "broadcast" "(" input { "," input } ")"        NumPy's broadcasting of these inputs
//           | "[" [ size { "," size } ] "]"                  sizes one by one
//   size    = term { ( "+" | "-" ) term }
//   term    = factor { ( "*" | "/" | "%" ) factor }          "/" rounds down
//   factor  = number | name | "dim" "(" input "," axis ")" | "(" size ")"
//
// Inputs count the reading pins of the node from 0. On an input, a rule of sizes is a pattern: a name that
// stands alone is bound there, and means the same size in the whole node. On an output, a name that no input
// binds is the size of the first input at the same axis: "[N, 16]" is [inputs[0].dim0, 16].
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/op/array.h"

namespace tessera::description {

using op::Extents;

/// One instruction of a size in postfix order, so that evaluation needs no recursion.
struct SizeCode {
  enum class Kind : std::uint8_t { number, name, dim, add, subtract, multiply, divide, modulo };
  Kind kind = Kind::number;
  std::int64_t number = 0;  ///< number; dim: the axis
  std::size_t input = 0;    ///< dim
  std::string name;
};
using SizeRule = std::vector<SizeCode>;

struct ShapeRule {
  enum class Kind : std::uint8_t { same, broadcast, sizes };
  Kind kind = Kind::same;
  std::vector<std::size_t> inputs;  ///< same: one; broadcast: at least one
  std::vector<SizeRule> sizes;
};

/// Parses a rule. An error has the column of what is wrong as its span's column, counted in the text from 1.
[[nodiscard]] Result<ShapeRule> parse_shape_rule(std::string_view text);

using SizeNames = std::map<std::string, std::int64_t, std::less<>>;

/// The shape a rule gives.
[[nodiscard]] Result<Extents> evaluate(const ShapeRule& rule, std::span<const Extents> inputs,
                                       const SizeNames& names);

/// Binds the names that stand alone in the rule of an input to the sizes of its shape.
[[nodiscard]] Result<void> bind_names(const ShapeRule& rule, const Extents& shape, SizeNames& names);

/// Checks that a shape is the one its rule gives.
[[nodiscard]] Result<void> check_shape(const ShapeRule& rule, const Extents& shape,
                                       std::span<const Extents> inputs, const SizeNames& names);

/// "[2, 3]"
[[nodiscard]] std::string to_text(const Extents& shape);

}  // namespace tessera::description
