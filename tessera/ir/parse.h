// Reads the text form of the IR. docs/ir.md defines the language.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::ir {

/// Free variables by name and type: two texts read with one of these share their free variables.
class FreeVariables {
 public:
  /// The variable of that name and type, made if there is none.
  Ref<Var> get(const std::string& name, const TypeRef& type, Span span);

 private:
  std::unordered_map<std::string, std::vector<Ref<Var>>> variables_;  ///< by name; only looked up
};

struct ParseOptions {
  std::string file = "<text>";
  /// Where the variables declared `free` come from; null makes new ones.
  FreeVariables* free_variables = nullptr;
  /// A text with more nodes is refused: a node takes about 100 bytes, and an expression may have one for each
  /// character.
  std::size_t max_nodes = 3'000'000;
};

/// The node a text describes: a function, a module (several functions), an expression, a statement or a type.
/// Errors have line, column, a caret and what was expected. Spans of the nodes point into the text.
[[nodiscard]] Result<NodeRef> parse(std::string_view text, const ParseOptions& options = {});

/// The same for a text that must be one function.
[[nodiscard]] Result<FunctionRef> parse_function(std::string_view text, const ParseOptions& options = {});

}  // namespace tessera::ir
