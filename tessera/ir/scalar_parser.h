// Scalar expressions of the text form: operators by precedence, functions, literals, `let`. No recursion, so
// that an expression may nest as deep as the text is long.
#pragma once

#include <string>

#include "tessera/ir/expr.h"
#include "tessera/ir/lexer.h"

namespace tessera::ir {

/// What a scalar expression needs to know about the text around it.
class ScalarContext {
 public:
  virtual ~ScalarContext() = default;
  /// The place of the next token.
  virtual Span here() = 0;
  /// One node more is about to be made at `offset`. Fails if the text has too many.
  virtual Result<void> take_node(std::size_t offset) = 0;
  virtual Result<ExprRef> variable_named(const std::string& name, std::size_t offset) = 0;
};

/// The expression that is next. Ends before the first token that cannot go on.
[[nodiscard]] Result<ExprRef> parse_scalar(Lexer& lexer, ScalarContext& context);

/// What follows a dtype in a float that has no decimal form: ".inf", ".neg_inf", ".nan", ".bits(0x…)".
[[nodiscard]] Result<double> special_float(Lexer& lexer, Dtype dtype);

}  // namespace tessera::ir
