// The text form of the IR: what a person reads and writes. docs/ir.md defines the language.
#pragma once

#include <string>

#include "tessera/ir/node.h"

namespace tessera::ir {

/// The node as a text that parse() reads back to a structurally equal node. Names that are not unique where
/// they are used get a number; free variables are declared first; shared subexpressions are written once
/// (`let`).
[[nodiscard]] std::string print(const Node& node);

/// One line for messages: a type, an expression or a statement without declarations, cut at `limit` bytes.
[[nodiscard]] std::string print_line(const Node& node, std::size_t limit = 80);

}  // namespace tessera::ir
