// Short texts for values and nodes in messages: never longer than a line, never recursive.
#pragma once

#include <string>

#include "tessera/base/text.h"
#include "tessera/ir/nodes.h"

namespace tessera::ir {

/// What a reader calls the node: the op of a call, the value of a constant, the name of a variable.
[[nodiscard]] std::string describe(const Node& node);
[[nodiscard]] std::string describe(const AttributeValue& value);
[[nodiscard]] std::string describe(const Bytes& bytes);
[[nodiscard]] std::string describe(const Dim& dim);
[[nodiscard]] std::string describe(const std::string& text);
[[nodiscard]] std::string describe(Dtype dtype);
/// A NaN by its bits: two may differ.
[[nodiscard]] std::string describe(double value);
/// The same of a dtype, whose bits a NaN shows.
[[nodiscard]] std::string describe_float(double value, Dtype dtype);
[[nodiscard]] std::string describe(ScalarOpcode opcode);
template <class T>
requires std::is_arithmetic_v<T>
[[nodiscard]] std::string describe(T value) { return cat(value); }
template <class T>
[[nodiscard]] std::string describe(const std::optional<T>& value) {
  return value ? describe(*value) : "absent";
}

/// The name of field `index` of the node.
[[nodiscard]] std::string_view field_name(const Node& node, std::uint8_t index);

}  // namespace tessera::ir
