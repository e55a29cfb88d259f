// The sides of the rules in algebra_rules.h as data: read once, matched against the calls of a draft, written
// as new calls.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tessera/compile/algebra_rules.h"
#include "tessera/compile/function_draft.h"

namespace tessera::compile {

struct Term {
  enum class Kind : std::uint8_t { value, constant, number, call };
  Kind kind = Kind::value;
  std::size_t letter = 0;  ///< of a value or a constant
  double number = 0;
  const op::Card* card = nullptr;
  std::vector<Term> args;
};

struct ParsedRule {
  const AlgebraRule* rule;
  Term from;
  Term to;
};

/// The rules whose left side is a call of `op`, in the order of the table. Any thread may call.
[[nodiscard]] const std::vector<ParsedRule>& rules_for(std::string_view op);

/// What the letters of a rule stand for.
class Bindings {
 public:
  /// Whether a call is the left side; then the letters stand for its parts.
  [[nodiscard]] bool match(const Term& term, const ir::Call& call, FunctionDraft& draft);
  /// What the letter x stands for.
  [[nodiscard]] const ir::ExprRef& x() const { return *bound_[0]; }
  /// Writes a right side. Numbers become tensors of `type`. Empty if that is not possible.
  [[nodiscard]] op::Value write(const Term& term, const op::ValueType& type, FunctionDraft& draft) const;

 private:
  bool match_operand(const Term& term, const ir::ExprRef& operand, FunctionDraft& draft);
  bool bind(std::size_t letter, const ir::ExprRef& operand);

  std::array<const ir::ExprRef*, 5> bound_{};
};

}  // namespace tessera::compile
