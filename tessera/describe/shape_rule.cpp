#include "tessera/describe/shape_rule.h"

#include <algorithm>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/op/value_type.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::size_t longest_rule = 4'096;  // with max_nesting, bounds the parser's stack
constexpr int max_nesting = 64;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  Result<ShapeRule> parse() {
    if (text_.size() > longest_rule) return fail(cat("a rule has at most ", longest_rule, " characters"));
    ShapeRule rule;
    skip_space();
    if (accept('[')) {
      rule.kind = ShapeRule::Kind::sizes;
      TESSERA_TRY(sizes(rule));
    } else {
      TESSERA_TRY(word_rule(rule));
    }
    if (at_ != text_.size()) return fail("expected the end of the rule");
    return rule;
  }

 private:
  Error fail(std::string message) const {
    return Error(ErrorCode::parse, std::move(message), {"", 1, static_cast<std::uint32_t>(at_ + 1)});
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    skip_space();
    return true;
  }
  Result<void> expect(char c) {
    if (!accept(c)) return fail(cat("expected '", c, "'"));
    return {};
  }
  std::string_view name() {
    const std::size_t begin = at_;
    while (is_name_start(peek()) || (at_ > begin && is_digit(peek()))) ++at_;
    const std::string_view out = text_.substr(begin, at_ - begin);
    skip_space();
    return out;
  }
  Result<std::int64_t> number() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    std::int64_t out = 0;
    const auto parsed = std::from_chars(text_.data() + begin, text_.data() + at_, out);
    if (parsed.ec != std::errc()) {
      at_ = begin;
      return fail(is_digit(peek()) ? "the number does not fit 64 bits" : "expected a number");
    }
    skip_space();
    return out;
  }
  Result<std::size_t> input() { return static_cast<std::size_t>(TESSERA_TRY(number())); }

  Result<void> word_rule(ShapeRule& rule) {
    const std::size_t begin = at_;
    const std::string_view word = name();
    if (word == "same") {
      rule.kind = ShapeRule::Kind::same;
      rule.inputs.push_back(0);
      if (!accept('(')) return {};
      rule.inputs[0] = TESSERA_TRY(input());
      return expect(')');
    }
    if (word == "broadcast") {
      rule.kind = ShapeRule::Kind::broadcast;
      TESSERA_TRY(expect('('));
      do rule.inputs.push_back(TESSERA_TRY(input()));
      while (accept(','));
      return expect(')');
    }
    at_ = begin;
    return fail("expected same, broadcast or '['");
  }

  Result<void> sizes(ShapeRule& rule) {
    if (accept(']')) return {};
    do {
      rule.sizes.emplace_back();
      TESSERA_TRY(sum(rule.sizes.back(), 0));
    } while (accept(','));
    return expect(']');
  }

  // The two levels of precedence call each other through parentheses only, max_nesting deep.
  Result<void> sum(SizeRule& out, int depth) {
    TESSERA_TRY(product(out, depth));
    for (char op = peek(); op == '+' || op == '-'; op = peek()) {
      accept(op);
      TESSERA_TRY(product(out, depth));
      out.push_back({.kind = op == '+' ? SizeCode::Kind::add : SizeCode::Kind::subtract});
    }
    return {};
  }
  Result<void> product(SizeRule& out, int depth) {
    TESSERA_TRY(factor(out, depth));
    for (char op = peek(); op == '*' || op == '/' || op == '%'; op = peek()) {
      accept(op);
      TESSERA_TRY(factor(out, depth));
      out.push_back({.kind = op == '*'   ? SizeCode::Kind::multiply
                             : op == '/' ? SizeCode::Kind::divide
                                         : SizeCode::Kind::modulo});
    }
    return {};
  }
  Result<void> factor(SizeRule& out, int depth) {
    if (is_digit(peek())) {
      out.push_back({.number = TESSERA_TRY(number())});
      return {};
    }
    if (peek() == '(') {
      if (depth == max_nesting) return fail(cat("nested deeper than ", max_nesting, " levels"));
      accept('(');
      TESSERA_TRY(sum(out, depth + 1));
      return expect(')');
    }
    if (!is_name_start(peek())) return fail("expected a number, a name, dim(input, axis) or '('");
    const std::string_view word = name();
    if (word != "dim" || peek() != '(') {
      out.push_back({.kind = SizeCode::Kind::name, .name = std::string(word)});
      return {};
    }
    accept('(');
    SizeCode code{.kind = SizeCode::Kind::dim};
    code.input = TESSERA_TRY(input());
    TESSERA_TRY(expect(','));
    code.number = TESSERA_TRY(number());
    out.push_back(std::move(code));
    return expect(')');
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Error shape_error(std::string message) { return Error(ErrorCode::shape, std::move(message)); }

Result<const Extents*> input_shape(std::span<const Extents> inputs, std::size_t i) {
  if (i < inputs.size()) return &inputs[i];
  return shape_error(cat("the rule names input ", i, ", the node reads ", inputs.size()));
}

std::optional<std::int64_t> apply(SizeCode::Kind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case SizeCode::Kind::add:
      return checked_add(a, b);
    case SizeCode::Kind::subtract:
      return checked_sub(a, b);
    case SizeCode::Kind::multiply:
      return checked_mul(a, b);
    case SizeCode::Kind::divide:
      return b == 0 ? std::nullopt : std::optional(floor_div(a, b));
    default:
      return b == 0 ? std::nullopt : std::optional(floor_mod(a, b));
  }
}

class SizeEvaluator {
 public:
  SizeEvaluator(std::span<const Extents> inputs, const SizeNames& names) : inputs_(inputs), names_(names) {}

  /// The size at `axis` of the shape that is being made.
  Result<std::int64_t> run(const SizeRule& rule, std::size_t axis) {
    std::vector<std::int64_t> stack;
    for (const SizeCode& code : rule) {
      if (code.kind == SizeCode::Kind::number) {
        stack.push_back(code.number);
      } else if (code.kind == SizeCode::Kind::name) {
        stack.push_back(TESSERA_TRY(named(code.name, axis)));
      } else if (code.kind == SizeCode::Kind::dim) {
        stack.push_back(TESSERA_TRY(dim(code.input, static_cast<std::size_t>(code.number))));
      } else {
        const std::int64_t b = stack.back();
        stack.pop_back();
        const auto value = apply(code.kind, stack.back(), b);
        if (!value) return shape_error(cat("the size at axis ", axis, " overflows or divides by 0"));
        stack.back() = *value;
      }
    }
    if (stack.back() < 0) return shape_error(cat("the size at axis ", axis, " would be ", stack.back()));
    return stack.back();
  }

 private:
  Result<std::int64_t> named(const std::string& name, std::size_t axis) {
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (inputs_.empty())
      return shape_error(cat("size '", name, "' stands for a size of an input, there is none"));
    return dim(0, axis);
  }
  Result<std::int64_t> dim(std::size_t input, std::size_t axis) {
    const Extents& shape = *TESSERA_TRY(input_shape(inputs_, input));
    if (axis < shape.size()) return shape[axis];
    return shape_error(
        cat("the rule takes axis ", axis, " of input ", input, ", which has shape ", to_text(shape)));
  }

  std::span<const Extents> inputs_;
  const SizeNames& names_;
};

Result<Extents> broadcast(const ShapeRule& rule, std::span<const Extents> inputs) {
  Extents out;
  for (std::size_t i : rule.inputs) {
    const Extents& next = *TESSERA_TRY(input_shape(inputs, i));
    if (next.size() > out.size())
      out = [&] {
        Extents wider(next.size() - out.size(), 1);
        for (std::int64_t size : out) wider.push_back(size);
        return wider;
      }();
    for (std::size_t k = 0; k < next.size(); ++k) {
      std::int64_t& size = out[out.size() - next.size() + k];
      if (size == 1) size = next[k];
      if (next[k] != 1 && next[k] != size)
        return shape_error(cat("input ", i, " of shape ", to_text(next), " does not broadcast: ", next[k],
                               " and ", size, " do not agree"));
    }
  }
  return out;
}

}  // namespace

std::string tessera::description::to_text(const Extents& shape) { return cat("[", join(shape, ", "), "]"); }

Result<ShapeRule> tessera::description::parse_shape_rule(std::string_view text) {
  return RuleParser(text).parse();
}

Result<Extents> tessera::description::evaluate(const ShapeRule& rule, std::span<const Extents> inputs,
                                               const SizeNames& names) {
  if (rule.kind == ShapeRule::Kind::same) return *TESSERA_TRY(input_shape(inputs, rule.inputs[0]));
  if (rule.kind == ShapeRule::Kind::broadcast) return broadcast(rule, inputs);
  if (rule.sizes.size() > op::max_rank)
    return shape_error(cat("rank ", rule.sizes.size(), " is more than ", op::max_rank));
  Extents out;
  SizeEvaluator evaluator(inputs, names);
  for (std::size_t axis = 0; axis < rule.sizes.size(); ++axis)
    out.push_back(TESSERA_TRY(evaluator.run(rule.sizes[axis], axis)));
  return out;
}

Result<void> tessera::description::bind_names(const ShapeRule& rule, const Extents& shape, SizeNames& names) {
  if (rule.kind != ShapeRule::Kind::sizes) return {};
  if (rule.sizes.size() != shape.size())
    return shape_error(cat("expected rank ", rule.sizes.size(), ", got shape ", to_text(shape)));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const SizeRule& size = rule.sizes[axis];
    if (size.size() != 1 || size[0].kind != SizeCode::Kind::name) continue;
    const auto [bound, is_new] = names.emplace(size[0].name, shape[axis]);
    if (!is_new && bound->second != shape[axis])
      return shape_error(cat("size '", size[0].name, "' is ", bound->second, " elsewhere in the node, axis ",
                             axis, " of shape ", to_text(shape), " has ", shape[axis]));
  }
  return {};
}

Result<void> tessera::description::check_shape(const ShapeRule& rule, const Extents& shape,
                                               std::span<const Extents> inputs, const SizeNames& names) {
  const Extents expected = TESSERA_TRY(evaluate(rule, inputs, names));
  if (expected != shape)
    return shape_error(cat("expected shape ", to_text(expected), ", got ", to_text(shape)));
  return {};
}
