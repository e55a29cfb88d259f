#include "tessera/ir/scalar_parser.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ir/literal.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// Programs have a list of all slots up to the last one.
constexpr std::int64_t most_parameters = 1 << 20;

/// Infix operators, longest first, so that "<=" is not read as "<".
constexpr ScalarOpcode infix_opcodes[] = {
    ScalarOpcode::floor_div, ScalarOpcode::eq,      ScalarOpcode::ne,     ScalarOpcode::le,
    ScalarOpcode::ge,        ScalarOpcode::shl,     ScalarOpcode::shr,    ScalarOpcode::add,
    ScalarOpcode::sub,       ScalarOpcode::mul,     ScalarOpcode::div,    ScalarOpcode::lt,
    ScalarOpcode::gt,        ScalarOpcode::bit_and, ScalarOpcode::bit_or, ScalarOpcode::bit_xor,
    ScalarOpcode::floor_mod};

class ScalarParser {
 public:
  ScalarParser(Lexer& lexer, ScalarContext& context) : lexer_(lexer), context_(context) {}

  Result<ExprRef> parse() {
    if (lexer_.accept("let")) TESSERA_TRY(lets());
    return one();
  }

 private:
  /// An operator, an opening parenthesis or a function whose operands are still being read.
  struct Pending {
    enum class Kind : std::uint8_t { infix, parenthesis, function };
    Kind kind;
    ScalarOpcode opcode = ScalarOpcode::add;
    Dtype dtype = Dtype::i64;
    std::size_t first_operand = 0;
    std::size_t offset = 0;
    Span span = {};
  };

  Result<void> lets() {
    for (std::size_t number = 0;; ++number) {
      TESSERA_TRY(lexer_.expect("!"));
      const std::size_t at = lexer_.next_offset();
      if (TESSERA_TRY(lexer_.integer("a number")) != static_cast<std::int64_t>(number))
        return lexer_.error_at(at, cat("expected !", number, ": shared expressions are numbered from 0"));
      TESSERA_TRY(lexer_.expect("="));
      lets_.push_back(TESSERA_TRY(one()));
      if (lexer_.accept("in")) return {};
      TESSERA_TRY(lexer_.expect(";"));
    }
  }

  /// Shunting-yard: operands and what waits for them on two stacks.
  Result<ExprRef> one() {
    const std::size_t pending_floor = pending_.size();
    const std::size_t operand_floor = operands_.size();
    for (;;) {
      if (TESSERA_TRY(opened())) continue;
      operands_.push_back(TESSERA_TRY(atom()));
      if (!TESSERA_TRY(after_operand(pending_floor))) break;
    }
    TESSERA_TRY(reduce(0, pending_floor));
    if (pending_.size() > pending_floor) return lexer_.expected("')'");
    TESSERA_CHECK(operands_.size() == operand_floor + 1, "an expression leaves one operand");
    ExprRef out = std::move(operands_.back());
    operands_.pop_back();
    return out;
  }

  /// Takes an opening parenthesis or the head of a function, if one is next.
  Result<bool> opened() {
    const std::size_t at = lexer_.next_offset();
    if (lexer_.accept('(')) {
      pending_.push_back({.kind = Pending::Kind::parenthesis, .offset = at});
      return true;
    }
    const auto dtype = parse_dtype(lexer_.peek_word());
    if (!dtype || lexer_.raw(to_string(*dtype).size()) != '.') return false;
    const std::size_t dot = to_string(*dtype).size();
    std::size_t length = 0;
    std::string name;
    while (is_word_char(lexer_.raw(dot + 1 + length))) name += lexer_.raw(dot + 1 + length++);
    if (lexer_.raw(dot + 1 + length) != '(' || name == "bits")
      return false;  // a literal: f32.inf, f32.bits(…)
    const auto opcode = parse_scalar_opcode(name);
    if (!opcode) return lexer_.error(cat("unknown scalar function '", shortened(name, 40), "'"));
    const Span span = context_.here();
    lexer_.advance(dot + 1 + length + 1);
    pending_.push_back({Pending::Kind::function, *opcode, *dtype, operands_.size(), at, span});
    return true;
  }

  /// After an operand: closing parentheses, then a comma or an operator. False when the expression has ended.
  Result<bool> after_operand(std::size_t floor) {
    for (;;) {
      const char next = lexer_.peek();
      if (next == ')' && open_group(floor) != nullptr) {
        TESSERA_TRY(reduce(0, floor));
        lexer_.advance();
        TESSERA_TRY(close_group());
        continue;
      }
      if (next == ',' && open_group(floor) != nullptr) {
        TESSERA_TRY(reduce(0, floor));
        if (pending_.back().kind != Pending::Kind::function) return lexer_.expected("')'");
        lexer_.advance();
        return true;
      }
      if (std::string_view("+-*/%<>=!&|^").find(next) == std::string_view::npos) return false;
      for (ScalarOpcode opcode : infix_opcodes) {
        const std::size_t at = lexer_.next_offset();
        const Span span = context_.here();
        if (!lexer_.accept(info(opcode).symbol)) continue;
        TESSERA_TRY(reduce(info(opcode).precedence, floor));
        pending_.push_back({.kind = Pending::Kind::infix, .opcode = opcode, .offset = at, .span = span});
        return true;
      }
      return false;
    }
  }

  /// The innermost parenthesis or function that is open, if there is one above `floor`.
  Pending* open_group(std::size_t floor) {
    for (std::size_t i = pending_.size(); i-- > floor;)
      if (pending_[i].kind != Pending::Kind::infix) return &pending_[i];
    return nullptr;
  }

  /// Applies the waiting operators that bind at least as tightly as `precedence`.
  Result<void> reduce(std::uint8_t precedence, std::size_t floor) {
    while (pending_.size() > floor && pending_.back().kind == Pending::Kind::infix &&
           info(pending_.back().opcode).precedence >= precedence) {
      const Pending top = pending_.back();
      pending_.pop_back();
      TESSERA_TRY(apply(top, operands_.size() - 2));
    }
    return {};
  }

  Result<void> close_group() {
    const Pending group = pending_.back();
    pending_.pop_back();
    if (group.kind == Pending::Kind::parenthesis) return {};
    return apply(group, group.first_operand);
  }

  /// Replaces the operands from `first` on by the operation on them.
  Result<void> apply(const Pending& pending, std::size_t first) {
    TESSERA_TRY(context_.take_node(pending.offset));
    const ScalarOpcodeInfo& opcode = info(pending.opcode);
    SmallVector<ExprRef, 2> operands(operands_.begin() + static_cast<std::ptrdiff_t>(first), operands_.end());
    operands_.resize(first);
    if (operands.size() != opcode.arity)
      return lexer_.error_at(pending.offset, cat("'", opcode.name, "' takes ", opcode.arity,
                                                 " operands, got ", operands.size()));
    if (pending.kind == Pending::Kind::function && pending.opcode == ScalarOpcode::cast) {
      operands_.push_back(scalar_cast(pending.dtype, operands[0], pending.span));
    } else if (pending.kind == Pending::Kind::function && pending.opcode == ScalarOpcode::bitcast) {
      operands_.push_back(scalar_bitcast(pending.dtype, operands[0], pending.span));
    } else {
      ExprRef out = scalar_op(pending.opcode, std::move(operands), pending.span);
      const Dtype dtype = static_cast<const ScalarOp&>(*out).dtype;
      if (pending.kind == Pending::Kind::function && dtype != pending.dtype)
        return lexer_.error_at(pending.offset, cat("'", opcode.name, "' of these operands is ",
                                                   to_string(dtype), ", not ", to_string(pending.dtype)));
      operands_.push_back(std::move(out));
    }
    return {};
  }

  Result<ExprRef> atom() {
    const char c = lexer_.peek();
    const std::size_t at = lexer_.next_offset();
    TESSERA_TRY(context_.take_node(at));
    if ((c >= '0' && c <= '9') || (c == '-' && lexer_.raw(1) >= '0' && lexer_.raw(1) <= '9')) return number();
    if (c == '$') return parameter();
    if (c == '!') return let_reference();
    if (lexer_.accept("true")) return ExprRef(bool_const(true));
    if (lexer_.accept("false")) return ExprRef(bool_const(false));
    const std::string_view word = lexer_.peek_word();
    if (const auto dtype = parse_dtype(word); dtype && lexer_.raw(word.size()) == '.') {
      lexer_.advance(word.size());
      return ExprRef(float_const(TESSERA_TRY(special_float(lexer_, *dtype)), *dtype));
    }
    const std::string name = TESSERA_TRY(lexer_.identifier("an expression"));
    if (lexer_.raw() == '(')
      return lexer_.error_at(
          at, cat("a call of '", printable(shortened(name, 40)),
                  "' can only be the value of an assignment; scalar functions are written f32.exp(x)"));
    return context_.variable_named(name, at);
  }

  /// ":dtype" behind a literal, or the default.
  Result<Dtype> suffix(Dtype otherwise) {
    if (lexer_.raw() != ':') return otherwise;
    lexer_.advance();
    const auto dtype = parse_dtype(lexer_.peek_word());
    if (!dtype) return lexer_.expected(cat("a dtype (", join(all_dtypes(), " "), ")"));
    lexer_.advance(to_string(*dtype).size());
    return *dtype;
  }

  Result<ExprRef> number() {
    const std::size_t at = lexer_.next_offset();
    bool is_float_text = false;
    const std::string_view digits = lexer_.number(is_float_text);
    const Dtype dtype = TESSERA_TRY(suffix(is_float_text ? Dtype::f32 : Dtype::i64));
    if (is_float(dtype)) {
      const auto value = parse_float(digits, dtype);
      if (!value)
        return lexer_.error_at(at, cat(shortened(digits, 40), " is out of range for ", to_string(dtype)));
      return ExprRef(float_const(*value, dtype));
    }
    const auto value = is_float_text ? std::nullopt : parse_integer(digits, dtype);
    if (!value) return lexer_.error_at(at, cat(shortened(digits, 40), " does not fit ", to_string(dtype)));
    return ExprRef(int_const(*value, dtype));
  }

  Result<ExprRef> parameter() {
    lexer_.advance();
    const std::size_t at = lexer_.next_offset();
    const std::int64_t slot = TESSERA_TRY(lexer_.integer("the number of a parameter"));
    if (slot < 0 || slot >= most_parameters)
      return lexer_.error_at(at, cat("parameter ", slot, " is out of range"));
    const Dtype dtype = TESSERA_TRY(suffix(Dtype::f32));
    return ExprRef(param(static_cast<std::uint32_t>(slot), dtype));
  }

  Result<ExprRef> let_reference() {
    lexer_.advance();
    const std::size_t at = lexer_.next_offset();
    const std::int64_t number = TESSERA_TRY(lexer_.integer("the number of a shared expression"));
    if (number < 0 || number >= static_cast<std::int64_t>(lets_.size()))
      return lexer_.error_at(at, cat("shared expression !", number, " is not defined here"));
    return lets_[static_cast<std::size_t>(number)];
  }

  Lexer& lexer_;
  ScalarContext& context_;
  std::vector<ExprRef> operands_;
  std::vector<Pending> pending_;
  std::vector<ExprRef> lets_;
};

}  // namespace

Result<ExprRef> tessera::ir::parse_scalar(Lexer& lexer, ScalarContext& context) {
  return ScalarParser(lexer, context).parse();
}

Result<double> tessera::ir::special_float(Lexer& lexer, Dtype dtype) {
  const std::size_t at = lexer.offset();
  if (!is_float(dtype)) return lexer.error_at(at, cat(to_string(dtype), " has no special values"));
  TESSERA_TRY(lexer.expect("."));
  if (lexer.accept("inf")) return std::numeric_limits<double>::infinity();
  if (lexer.accept("neg_inf")) return -std::numeric_limits<double>::infinity();
  if (lexer.accept("nan")) return std::numeric_limits<double>::quiet_NaN();
  TESSERA_TRY(lexer.expect("bits"));
  TESSERA_TRY(lexer.expect("("));
  const std::size_t digits_at = lexer.next_offset();
  std::string digits;
  if (lexer.peek() == '0' && lexer.raw(1) == 'x') {
    lexer.advance(2);
    while (is_word_char(lexer.raw()) && digits.size() <= 16) {
      digits += lexer.raw();
      lexer.advance();
    }
  }
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  const std::size_t width = 8 * size_of(dtype);
  if (digits.empty() || !is_number || (width < 64 && bits >> width != 0))
    return lexer.error_at(digits_at, cat("expected the ", width, " bits of ", to_string(dtype),
                                         " as 0x and at most ", width / 4, " hexadecimal digits"));
  TESSERA_TRY(lexer.expect(")"));
  return float_from_bits(bits, dtype);
}
