#include "tessera/ir/parse.h"

#include <cmath>
#include <limits>
#include <unordered_map>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/lexer.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/scalar_parser.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/syntax.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr std::string_view document_begins = "'free', 'func', 'local', 'module', 'expr', 'stmt' or 'type'";
constexpr int max_nesting = 400;  // of regions and tuple types; scalar expressions nest without limit

/// Calls f.operator()<N>() for each node type with a syntax until one returns true.
template <class F>
bool any_syntax(F&& f) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto one = [&]<class N>() {
      if constexpr (HasSyntax<N>) return f.template operator()<N>();
      return false;
    };
    return (one.template operator()<std::tuple_element_t<i, AllNodes>>() || ...);
  }
  (std::make_index_sequence<node_kind_count>());
}

class Parser final : public ScalarContext {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : source_(options.file, std::string(text)),
        lexer_(source_),
        file_(SourceFile::create(options.file)),
        max_nodes_(options.max_nodes),
        free_variables_(options.free_variables != nullptr ? *options.free_variables : own_free_variables_) {}

  Result<NodeRef> document() {
    while (lexer_.is_next("free")) TESSERA_TRY(free_declaration());
    const bool is_module = lexer_.accept("module");
    while (lexer_.accept("local")) TESSERA_TRY(function_item());
    if (!is_module)
      for (std::string_view word : {"expr", "stmt", "type"})
        if (lexer_.is_next(word)) return single_item(word);
    return functions(is_module);
  }

 private:
  // ---- documents

  Result<void> free_declaration() {
    TESSERA_TRY(lexer_.expect("free"));
    const Span span = here();
    const std::size_t at = lexer_.offset();
    const std::string name = TESSERA_TRY(lexer_.identifier("the name of a free variable"));
    if (free_names_.contains(name))
      return lexer_.error_at(at, cat("free variable '", printable(name), "' is declared twice"));
    const TypeRef type = TESSERA_TRY(annotation());
    free_names_[name] = free_variables_.get(name, type, span);
    return {};
  }

  Result<NodeRef> single_item(std::string_view word) {
    TESSERA_TRY(lexer_.expect(word));
    NodeRef out;
    if (word == "expr") out = TESSERA_TRY(expression());
    if (word == "stmt") out = TESSERA_TRY(node<Assign>());
    if (word == "type") out = TESSERA_TRY(type());
    if (!lexer_.at_end()) return lexer_.expected("the end of the text");
    return out;
  }

  Result<NodeRef> functions(bool is_module) {
    std::vector<FunctionRef> members;
    while (!lexer_.at_end()) {
      if (members.empty() && !lexer_.is_next("func") && !is_module) return lexer_.expected(document_begins);
      members.push_back(TESSERA_TRY(function_item()));
    }
    if (is_module || members.size() > 1) return module(std::move(members));
    if (members.empty()) return lexer_.expected(document_begins);
    return members[0];
  }

  Result<FunctionRef> function_item() {
    TESSERA_TRY(lexer_.expect("func"));
    const std::size_t at = lexer_.next_offset();
    pending_name_ = TESSERA_TRY(lexer_.identifier("the name of a function"));
    const std::string name = pending_name_;
    FunctionRef function = TESSERA_TRY(node<Function>());
    if (!functions_.emplace(name, function).second)
      return lexer_.error_at(at, cat("function '", printable(name), "' is defined twice"));
    return function;
  }

  // ---- nodes, by their syntax

  template <HasSyntax N>
  Result<Ref<N>> node() {
    if (depth_ >= max_nesting) return lexer_.error(cat("nested deeper than ", max_nesting, " levels"));
    TESSERA_TRY(take_node(lexer_.next_offset()));
    ++depth_;
    auto out = node_at_depth<N>();
    --depth_;
    return out;
  }

  template <HasSyntax N>
  Result<Ref<N>> node_at_depth() {
    auto draft = std::make_unique<N>(here());
    if constexpr (std::is_same_v<N, Function>) {
      draft->name = std::exchange(pending_name_, std::string());
      scopes_.emplace_back();
    }
    TESSERA_TRY(pieces(*draft));
    if constexpr (std::is_same_v<N, Function>) scopes_.pop_back();
    if constexpr (std::is_same_v<N, Assign>)
      for (const Ref<Var>& target : draft->targets) scopes_.back().insert_or_assign(target->name, target);
    return seal(std::move(draft));
  }

  template <HasSyntax N>
  Result<void> pieces(N& draft) {
    const SyntaxPiece* end = syntax_of<N>.end();
    for (const SyntaxPiece* piece = syntax_of<N>.begin(); piece != end; ++piece) {
      if (piece->kind == SyntaxPiece::Kind::literal) {
        TESSERA_TRY(lexer_.expect_all(piece->text));
      } else if (piece->kind == SyntaxPiece::Kind::field) {
        TESSERA_TRY(field(draft, piece->field));
      } else if (piece->kind == SyntaxPiece::Kind::group_begin) {
        if (!lexer_.is_next(Lexer::first_token(piece[1].text)))
          while (piece->kind != SyntaxPiece::Kind::group_end) ++piece;
      }
    }
    return {};
  }

  template <class N>
  Result<void> field(N& draft, std::uint8_t wanted) {
    Result<void> result;
    std::uint8_t index = 0;
    for_each_field(draft, [&](const auto& field, auto& value) {
      if (index++ == wanted) result = parse_into(value, field.kind, std::is_same_v<N, Assign>);
    });
    return result;
  }

  // ---- values, by their type

  Result<void> parse_into(std::string& out, FieldKind, bool) {
    out = TESSERA_TRY(lexer_.identifier("a name"));
    return {};
  }
  Result<void> parse_into(ExprRef& out, FieldKind, bool) {
    out = TESSERA_TRY(expression());
    return {};
  }
  Result<void> parse_into(TypeRef& out, FieldKind, bool) {
    out = TESSERA_TRY(type());
    return {};
  }
  Result<void> parse_into(FunctionRef& out, FieldKind, bool) {
    if (!lexer_.accept('@')) {
      out = TESSERA_TRY(node<Function>());
      return {};
    }
    const std::size_t at = lexer_.next_offset();
    const std::string name = TESSERA_TRY(lexer_.identifier("the name of a function"));
    const auto found = functions_.find(name);
    if (found == functions_.end())
      return lexer_.error_at(at, cat("unknown function '", printable(shortened(name, 60)), "'"));
    out = found->second;
    return {};
  }
  Result<void> parse_into(Ref<Assign>& out, FieldKind, bool) {
    out = TESSERA_TRY(node<Assign>());
    return {};
  }
  Result<void> parse_into(Ref<Var>& out, FieldKind, bool is_target) {
    const Span span = here();
    const std::size_t at = lexer_.offset();
    const std::string name = TESSERA_TRY(lexer_.identifier("the name of a variable"));
    if (!is_target && scopes_.back().contains(name))
      return lexer_.error_at(at, cat("'", printable(name), "' is defined twice"));
    out = variable(name, TESSERA_TRY(annotation()), span);
    if (!is_target) scopes_.back().emplace(name, out);
    return {};
  }
  Result<void> parse_into(Dim& out, FieldKind, bool) {
    const std::size_t at = lexer_.next_offset();
    const ExprRef expr = TESSERA_TRY(parse_scalar(lexer_, *this));
    if (scalar_dtype(*expr) != Dtype::i64)
      return lexer_.error_at(at, "expected a dimension: an i64 expression");
    out = simplified(expr);
    return {};
  }
  Result<void> parse_into(Dtype& out, FieldKind, bool) {
    const auto dtype = parse_dtype(lexer_.peek_word());
    if (!dtype) return lexer_.expected(cat("a dtype (", join(all_dtypes(), " "), ")"));
    lexer_.advance(to_string(*dtype).size());
    out = *dtype;
    return {};
  }
  Result<void> parse_into(Range& out, FieldKind, bool) {
    if (!lexer_.accept("in")) return {};
    const auto bound = [&]() -> Result<std::optional<std::int64_t>> {
      const char c = lexer_.peek();
      if (c != '-' && !(c >= '0' && c <= '9')) return std::optional<std::int64_t>();
      return std::optional(TESSERA_TRY(lexer_.integer("a bound")));
    };
    out.lower = TESSERA_TRY(bound());
    TESSERA_TRY(lexer_.expect(".."));
    out.upper = TESSERA_TRY(bound());
    return {};
  }
  Result<void> parse_into(std::uint32_t& out, FieldKind, bool) {
    const std::size_t at = lexer_.next_offset();
    const std::int64_t value = TESSERA_TRY(lexer_.integer("an index"));
    if (value < 0 || value > std::numeric_limits<std::uint32_t>::max())
      return lexer_.error_at(at, "expected an index");
    out = static_cast<std::uint32_t>(value);
    return {};
  }
  Result<void> parse_into(std::optional<std::int64_t>& out, FieldKind, bool) {
    out = TESSERA_TRY(lexer_.integer("an integer"));
    return {};
  }
  Result<void> parse_into(std::vector<Ref<Assign>>& out, FieldKind, bool) {
    while (!lexer_.is_next("return")) {
      if (lexer_.at_end() || lexer_.peek() == '}')
        return lexer_.expected("a statement or 'return', with which a function ends");
      out.push_back(TESSERA_TRY(node<Assign>()));
    }
    return {};
  }
  template <class List>
  requires requires(List list) { list.emplace_back(); }
  Result<void> parse_into(List& out, FieldKind kind, bool is_target) {
    if (const char c = lexer_.peek(); c == ')' || c == ']' || c == '}' || c == '=') return {};
    do TESSERA_TRY(parse_into(out.emplace_back(), kind, is_target));
    while (lexer_.accept(','));
    return {};
  }

  // ---- attributes

  Result<void> parse_into(Attributes& out, FieldKind, bool) {
    if (!lexer_.accept('{')) return {};
    if (lexer_.accept('}')) return {};
    do {
      const std::size_t at = lexer_.next_offset();
      std::string name = TESSERA_TRY(lexer_.identifier("the name of an attribute"));
      if (out.find(name) != nullptr)
        return lexer_.error_at(at, cat("attribute '", printable(name), "' is given twice"));
      TESSERA_TRY(lexer_.expect("="));
      out.set(std::move(name), TESSERA_TRY(attribute_value()));
    } while (lexer_.accept(','));
    return lexer_.expect("}");
  }

  Result<AttributeValue> attribute_value() {
    if (lexer_.accept('[')) return attribute_list();
    if (lexer_.accept("true")) return AttributeValue(true);
    if (lexer_.accept("false")) return AttributeValue(false);
    if (lexer_.peek() == '"') return AttributeValue(TESSERA_TRY(lexer_.string()));
    if (lexer_.accept("shape")) {
      Shape shape;
      TESSERA_TRY(lexer_.expect("["));
      TESSERA_TRY(parse_into(shape, FieldKind::usual, false));
      TESSERA_TRY(lexer_.expect("]"));
      return AttributeValue(std::move(shape));
    }
    if (parse_dtype(lexer_.peek_word())) {
      Dtype dtype{};
      TESSERA_TRY(parse_into(dtype, FieldKind::usual, false));
      if (lexer_.raw() != '.') return AttributeValue(dtype);
      return AttributeValue(TESSERA_TRY(special_float(lexer_, dtype)));
    }
    return attribute_number();
  }

  Result<AttributeValue> attribute_number() {
    const std::size_t at = lexer_.next_offset();
    bool is_float = false;
    const std::string_view digits = lexer_.number(is_float);
    if (is_float) {
      const auto value = parse_float(digits, Dtype::f64);
      if (!value) return lexer_.error_at(at, cat("float ", shortened(digits, 40), " is out of range"));
      return AttributeValue(*value);
    }
    const auto value = parse_integer(digits, Dtype::i64);
    if (digits.empty() || digits == "-") return lexer_.expected("the value of an attribute");
    if (!value) return lexer_.error_at(at, cat("integer ", shortened(digits, 40), " does not fit 64 bits"));
    return AttributeValue(*value);
  }

  Result<AttributeValue> attribute_list() {
    if (lexer_.accept(':')) {
      const bool floats = lexer_.accept("float");
      if (!floats) TESSERA_TRY(lexer_.expect("string"));
      TESSERA_TRY(lexer_.expect("]"));
      return floats ? AttributeValue(std::vector<double>()) : AttributeValue(std::vector<std::string>());
    }
    if (lexer_.accept(']')) return AttributeValue(std::vector<std::int64_t>());
    AttributeValue first = TESSERA_TRY(attribute_value());
    if (std::holds_alternative<std::int64_t>(first)) return list_of<std::int64_t>(std::move(first));
    if (std::holds_alternative<double>(first)) return list_of<double>(std::move(first));
    if (std::holds_alternative<std::string>(first)) return list_of<std::string>(std::move(first));
    return lexer_.error("a list has integers, floats or strings");
  }

  template <class T>
  Result<AttributeValue> list_of(AttributeValue first) {
    std::vector<T> out{std::get<T>(std::move(first))};
    while (lexer_.accept(',')) {
      const std::size_t at = lexer_.next_offset();
      AttributeValue next = TESSERA_TRY(attribute_value());
      if (!std::holds_alternative<T>(next))
        return lexer_.error_at(at, "the elements of a list have one type");
      out.push_back(std::get<T>(std::move(next)));
    }
    TESSERA_TRY(lexer_.expect("]"));
    return AttributeValue(std::move(out));
  }

  // ---- types

  /// ": type", or nothing for an i64 scalar.
  Result<TypeRef> annotation() {
    if (lexer_.accept(':')) return type();
    return plain_size_type_;
  }

  Result<TypeRef> type() {
    if (lexer_.peek() == '(') return TypeRef(TESSERA_TRY(node<TupleType>()));
    const std::string_view word = lexer_.peek_word();
    if (!parse_dtype(word)) return lexer_.expected(cat("a type (dtypes: ", join(all_dtypes(), " "), ")"));
    if (lexer_.raw(word.size()) == '[') return TypeRef(TESSERA_TRY(node<TensorType>()));
    return TypeRef(TESSERA_TRY(node<ScalarType>()));
  }

  // ---- expressions

  Result<ExprRef> expression() {
    const std::string_view word = lexer_.peek_word();
    if (!word.empty() || lexer_.peek() == '`') {
      if (is_call() && !is_reserved_word(word)) return wrap(node<Call>());
      std::optional<Result<ExprRef>> found;
      any_syntax([&]<class N>() {
        if constexpr (std::is_base_of_v<Expr, N> && !leading_word<N>().empty())
          if (leading_word<N>() == word) found.emplace(wrap(node<N>()));
        return found.has_value();
      });
      if (found) return *std::move(found);
      if (word == "dense") return dense_constant();
    }
    return parse_scalar(lexer_, *this);
  }

  template <class N>
  static Result<ExprRef> wrap(Result<Ref<N>> result) {
    return ExprRef(TESSERA_TRY(std::move(result)));
  }

  /// A name with an opening parenthesis right behind it. (`f32.exp(x)` is a scalar function.)
  bool is_call() {
    if (lexer_.peek() == '`') {
      std::size_t end = 1;
      while (lexer_.raw(end) != '`' && lexer_.raw(end) != '\0' && lexer_.raw(end) != '\n')
        end += lexer_.raw(end) == '\\' ? 2 : 1;
      return lexer_.raw(end + 1) == '(';
    }
    return lexer_.raw(lexer_.peek_word().size()) == '(';
  }

  Result<ExprRef> dense_constant() {
    TESSERA_TRY(lexer_.expect("dense"));
    const std::size_t type_at = lexer_.next_offset();
    const auto type = TESSERA_TRY(node<TensorType>());
    const auto count = element_count(type->shape);
    if (!count)
      return lexer_.error_at(type_at, "a dense tensor needs constant dimensions whose product fits 64 bits");
    const std::size_t at = lexer_.next_offset();
    std::vector<std::byte> data = TESSERA_TRY(dense_data(type->dtype));
    const auto bytes = checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(size_of(type->dtype)));
    if (!bytes || *bytes != static_cast<std::int64_t>(data.size()))
      return lexer_.error_at(at, cat("dense ", to_text(type->shape), " has ", *count, " elements of ",
                                     size_of(type->dtype), " bytes, got ", data.size(), " bytes"));
    return ExprRef(dense(type, Bytes::own(std::move(data))));
  }

  Result<std::vector<std::byte>> dense_data(Dtype dtype) {
    if (lexer_.peek() == 'x' && lexer_.raw(1) == '"') {
      lexer_.advance();
      const std::size_t at = lexer_.next_offset();
      auto data = parse_hex(TESSERA_TRY(lexer_.string()));
      if (!data) return lexer_.error_at(at, "expected an even number of hexadecimal digits");
      return *std::move(data);
    }
    std::vector<std::byte> out;
    TESSERA_TRY(lexer_.expect("["));
    if (lexer_.accept(']')) return out;
    do TESSERA_TRY(dense_element(dtype, out));
    while (lexer_.accept(','));
    TESSERA_TRY(lexer_.expect("]"));
    return out;
  }

  Result<void> dense_element(Dtype dtype, std::vector<std::byte>& out) {
    const std::size_t at = lexer_.next_offset();
    if (dtype == Dtype::boolean) {
      const bool value = lexer_.accept("true");
      if (!value) TESSERA_TRY(lexer_.expect("false"));
      append_element_bytes(out, dtype, 0, value ? 1 : 0);
      return {};
    }
    bool is_float_text = false;
    const std::string_view digits = lexer_.number(is_float_text);
    const auto number = is_float(dtype) ? parse_float(digits, dtype) : std::optional<double>(0);
    const auto whole = is_float(dtype) ? std::optional<std::int64_t>(0) : parse_integer(digits, dtype);
    if (digits.empty() || !number || !whole)
      return lexer_.error_at(at, cat("expected an element of dtype ", to_string(dtype)));
    append_element_bytes(out, dtype, *number, *whole);
    return {};
  }

  // ---- names

  Result<ExprRef> variable_named(const std::string& name, std::size_t at) override {
    if (const auto bound = scopes_.back().find(name); bound != scopes_.back().end())
      return ExprRef(bound->second);
    if (const auto free = free_names_.find(name); free != free_names_.end()) return ExprRef(free->second);
    return lexer_.error_at(at, cat("unknown variable '", printable(shortened(name, 60)), "'"));
  }

  Result<void> take_node(std::size_t offset) override {
    if (++nodes_ <= max_nodes_) return {};
    return Error(ErrorCode::limit, cat("the text has more than ", max_nodes_, " nodes"),
                 source_.span_at(offset));
  }

  /// Lines are counted from where the last span was taken, so that a long text costs one scan.
  Span here() override {
    const std::size_t at = lexer_.next_offset();
    const std::string_view text = source_.text();
    for (; scanned_ < at; ++scanned_) {
      if ((static_cast<unsigned char>(text[scanned_]) & 0xc0) != 0x80)
        ++column_;  // the start of a code point
      if (text[scanned_] == '\n') {
        ++line_;
        column_ = 1;
      }
    }
    return {file_, line_, column_};
  }

  SourceText source_;
  Lexer lexer_;
  Ref<SourceFile> file_;
  std::size_t scanned_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  int depth_ = 0;
  std::size_t nodes_ = 0;
  std::size_t max_nodes_;
  std::string pending_name_;  ///< of the function that is about to be read
  TypeRef plain_size_type_ = scalar_type(Dtype::i64);
  FreeVariables own_free_variables_;
  FreeVariables& free_variables_;
  std::unordered_map<std::string, Ref<Var>> free_names_;
  std::vector<std::unordered_map<std::string, Ref<Var>>> scopes_{1};
  std::unordered_map<std::string, FunctionRef> functions_;
};

}  // namespace

Ref<Var> FreeVariables::get(const std::string& name, const TypeRef& type, Span span) {
  std::vector<Ref<Var>>& named = variables_[name];
  for (const Ref<Var>& known : named)
    if (structural_equal(*known->type, *type, CompareMode::strict)) return known;
  auto draft = std::make_unique<Var>(std::move(span));
  draft->name = name;
  draft->type = type;
  draft->id = variable(name, type)->id;
  draft->declared = true;
  return named.emplace_back(seal(std::move(draft)));
}

Result<NodeRef> tessera::ir::parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).document();
}

Result<FunctionRef> tessera::ir::parse_function(std::string_view text, const ParseOptions& options) {
  const NodeRef node = TESSERA_TRY(parse(text, options));
  const auto* function = as<Function>(node);
  if (function == nullptr)
    return SourceText(options.file, std::string(text))
        .error_at(0, cat("expected one function, got ", to_string(node->kind())));
  return FunctionRef(function);
}
