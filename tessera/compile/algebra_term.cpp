#include "tessera/compile/algebra_term.h"

#include <charconv>
#include <map>

#include "tessera/base/check.h"
#include "tessera/compile/constants.h"
#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

constexpr std::string_view letters = "xypab";
constexpr std::size_t first_constant = 3;

/// Reads the little language of the table. The table is ours: what is wrong in it is an internal error.
class TermReader {
 public:
  explicit TermReader(std::string_view text) : text_(text) {}

  Term read() {
    Term out = term();
    TESSERA_CHECK(text_.empty(), cat("a rule goes on with '", text_, "'"));
    return out;
  }

 private:
  Term term() {
    const std::string_view word = take_word();
    if (!take('(')) return leaf(word);
    Term out{.kind = Term::Kind::call, .card = op::find_card(word)};
    TESSERA_CHECK(out.card != nullptr, cat("a rule names the op '", word, "', which does not exist"));
    do out.args.push_back(term());
    while (take(','));
    TESSERA_CHECK(take(')'), "a rule lacks ')'");
    return out;
  }

  static Term leaf(std::string_view word) {
    const std::size_t letter = word.size() == 1 ? letters.find(word[0]) : std::string_view::npos;
    if (letter != std::string_view::npos)
      return {.kind = letter < first_constant ? Term::Kind::value : Term::Kind::constant, .letter = letter};
    Term out{.kind = Term::Kind::number};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out.number);
    TESSERA_CHECK(error == std::errc() && end == word.data() + word.size(),
                  cat("a rule has the word '", word, "'"));
    return out;
  }

  std::string_view take_word() {
    const std::size_t size = std::min(text_.find_first_of("(), "), text_.size());
    const std::string_view word = text_.substr(0, size);
    text_.remove_prefix(size);
    return word;
  }
  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
    return true;
  }

  std::string_view text_;
};

using RuleTable = std::map<std::string_view, std::vector<ParsedRule>>;

RuleTable read_rules() {
  RuleTable out;
  for (const AlgebraRule& rule : algebra_rules) {
    ParsedRule parsed{&rule, TermReader(rule.from).read(), TermReader(rule.to).read()};
    out[parsed.from.card->name].push_back(std::move(parsed));
  }
  return out;
}

bool same_operand(const ir::ExprRef& a, const ir::ExprRef& b) {
  if (a == b) return true;
  if (ir::is<ir::Var>(a) || ir::is<ir::Var>(b) || a->kind() != b->kind()) return false;
  return ir::structural_equal(*a, *b, ir::CompareMode::strict);
}

}  // namespace

const std::vector<ParsedRule>& tessera::compiler::rules_for(std::string_view op) {
  // Never destroyed: a plan may be in the making beside the program when the process ends.
  static const auto& table = *new RuleTable(read_rules());
  static const auto& none = *new std::vector<ParsedRule>;
  const auto found = table.find(op);
  return found == table.end() ? none : found->second;
}

bool Bindings::match(const Term& term, const ir::Call& call, FunctionDraft& draft) {
  if (call.op != term.card->name || call.args.size() != term.args.size()) return false;
  const auto saved = bound_;
  const auto in_order = [&](bool swapped) {
    for (std::size_t i = 0; i < term.args.size(); ++i)
      if (!match_operand(term.args[i], call.args[swapped ? 1 - i : i], draft)) return bound_ = saved, false;
    return true;
  };
  return in_order(false) || (term.card->traits.commutative && term.args.size() == 2 && in_order(true));
}

bool Bindings::match_operand(const Term& term, const ir::ExprRef& operand, FunctionDraft& draft) {
  switch (term.kind) {
    case Term::Kind::value:
      return bind(term.letter, operand);
    case Term::Kind::constant:
      return is_constant(*operand) && bind(term.letter, operand);
    case Term::Kind::number:
      return is_everywhere(*operand, term.number);
    case Term::Kind::call:
      break;
  }
  const ir::Call* call = draft.call_of(*operand);
  return call != nullptr && match(term, *call, draft);
}

bool Bindings::bind(std::size_t letter, const ir::ExprRef& operand) {
  if (bound_[letter] != nullptr) return same_operand(*bound_[letter], operand);
  bound_[letter] = &operand;
  return true;
}

op::Value Bindings::write(const Term& term, const op::ValueType& type, FunctionDraft& draft) const {
  switch (term.kind) {
    case Term::Kind::value:
    case Term::Kind::constant:
      return draft.value(*bound_[term.letter]);
    case Term::Kind::number:
      return op::full(draft.builder(), term.number, type);
    case Term::Kind::call:
      break;
  }
  std::vector<op::Value> args;
  for (const Term& arg : term.args) args.push_back(write(arg, type, draft));
  return draft.builder().call(term.card->name, args);
}
