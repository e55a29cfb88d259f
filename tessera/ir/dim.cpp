#include "tessera/ir/dim.h"

#include <charconv>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/ir/fold_expression.h"
#include "tessera/ir/integers.h"
#include "tessera/ir/print.h"
#include "tessera/ir/scalar_fold.h"
#include "tessera/ir/size_algebra.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr int max_simplify_depth = 1000;

Dim binary(ScalarOpcode opcode, const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    if (const auto value = evaluate_integers(opcode, a.value(), b.value())) return *value;
  return to_dim(SizeAlgebra().combine(opcode, terms_of(a), terms_of(b)));
}

ExprRef expression_of(const Dim& dim) {
  return dim.is_constant() ? ExprRef(int_const(dim.value())) : dim.expr();
}

bool is_transparent(ScalarOpcode opcode) {
  return opcode == ScalarOpcode::add || opcode == ScalarOpcode::sub || opcode == ScalarOpcode::mul;
}

/// How deep operations that are no sums or products nest; stops counting at the limit.
int opaque_depth(const Expr& root) {
  std::vector<std::pair<const Expr*, int>> stack{{&root, 0}};
  NodeTable<int> seen;
  int deepest = 0;
  while (!stack.empty() && deepest <= max_simplify_depth) {
    const auto [expr, depth] = stack.back();
    stack.pop_back();
    deepest = std::max(deepest, depth);
    const auto* scalar = as<ScalarOp>(*expr);
    if (scalar == nullptr) continue;
    int& known = seen[*expr];
    if (known > depth) continue;
    known = depth + 1;
    const int below = depth + (is_transparent(scalar->opcode) ? 0 : 1);
    for (const ExprRef& operand : scalar->operands) stack.emplace_back(operand.get(), below);
  }
  return deepest;
}

}  // namespace

Dim tessera::ir::operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    if (const auto sum = checked_add(a.value(), b.value())) return *sum;
  return binary(ScalarOpcode::add, a, b);
}
Dim tessera::ir::operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    if (const auto difference = checked_sub(a.value(), b.value())) return *difference;
  return binary(ScalarOpcode::sub, a, b);
}
Dim tessera::ir::operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    if (const auto result = checked_mul(a.value(), b.value())) return *result;
  return binary(ScalarOpcode::mul, a, b);
}
Dim tessera::ir::floor_div(const Dim& a, const Dim& b) { return binary(ScalarOpcode::floor_div, a, b); }
Dim tessera::ir::floor_mod(const Dim& a, const Dim& b) { return binary(ScalarOpcode::floor_mod, a, b); }
Dim tessera::ir::ceil_div(const Dim& a, const Dim& b) { return floor_div(a + (b - Dim(1)), b); }
Dim tessera::ir::min(const Dim& a, const Dim& b) { return binary(ScalarOpcode::min, a, b); }
Dim tessera::ir::max(const Dim& a, const Dim& b) { return binary(ScalarOpcode::max, a, b); }

Dim tessera::ir::product(std::span<const Dim> dims) {
  Dim out = 1;
  for (const Dim& dim : dims) out = out * dim;
  return out;
}

Dim tessera::ir::simplified(const ExprRef& expr) {
  if (!is<ScalarOp>(*expr)) return Dim(expr);
  const ExprRef folded = fold_scalars(expr);
  const bool is_size = is<ScalarOp>(*folded) && scalar_dtype(*folded) == Dtype::i64;
  if (!is_size || opaque_depth(*folded) > max_simplify_depth) return Dim(folded);
  return to_dim(SizeAlgebra().simplify(*folded));
}

Range tessera::ir::bounds(const Dim& dim) {
  if (dim.is_constant()) return {dim.value(), dim.value()};
  return range_of(terms_of(dim));
}

bool tessera::ir::provably_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  const Range difference = bounds(a - b);
  return difference.lower == 0 && difference.upper == 0;
}
bool tessera::ir::provably_at_least(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.value() >= b.value();
  return bounds(a - b).lower.value_or(-1) >= 0;
}
bool tessera::ir::provably_different(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.value() != b.value();
  if (a == b) return false;
  const Range difference = bounds(a - b);
  return difference.lower.value_or(0) > 0 || difference.upper.value_or(0) < 0;
}

Dim tessera::ir::substitute(const Dim& dim, const std::function<std::optional<Dim>(const Var&)>& value_of) {
  if (dim.is_constant()) return dim;
  const auto leaf = [&](const Expr& expr) {
    const auto* var = as<Var>(expr);
    const auto value = var != nullptr ? value_of(*var) : std::nullopt;
    return value.value_or(Dim(ExprRef(&expr)));
  };
  const auto operation = [](const ScalarOp& op, std::span<const Dim* const> values) {
    if (is_size_operation(op)) return binary(op.opcode, *values[0], *values[1]);
    SmallVector<ExprRef, 2> operands;
    for (const Dim* value : values) operands.push_back(expression_of(*value));
    return Dim(refold(op, std::move(operands)));
  };
  return fold_expression<Dim>(
      *dim.expr(), [](const Expr& expr) { return is<ScalarOp>(expr); }, leaf, operation);
}

namespace {

using KnownSize = std::optional<std::int64_t>;
using SymbolValue = std::function<KnownSize(const Var&)>;

/// What is looked at of an expression before a table is worth while, each use of a node counted.
constexpr int most_small_nodes = 64;

KnownSize leaf_value(const Expr& expr, const SymbolValue& value_of) {
  if (const auto* var = as<Var>(expr)) return value_of(*var);
  const auto* constant = as<IntConst>(expr);
  return constant != nullptr && constant->dtype == Dtype::i64 ? KnownSize(constant->value) : std::nullopt;
}

KnownSize small_value(const Expr& expr, const SymbolValue& value_of, int& nodes_left) {
  if (--nodes_left < 0) return std::nullopt;
  if (!is_size_operation(expr)) return leaf_value(expr, value_of);
  const auto& op = static_cast<const ScalarOp&>(expr);
  const KnownSize a = small_value(*op.operands[0], value_of, nodes_left);
  const KnownSize b = a ? small_value(*op.operands[1], value_of, nodes_left) : std::nullopt;
  return b ? evaluate_integers(op.opcode, *a, *b) : std::nullopt;
}

/// By arithmetic alone; nothing where that does not suffice.
KnownSize computed(const Dim& dim, const SymbolValue& value_of) {
  if (const auto number = evaluate_small(*dim.expr(), value_of)) return number;
  const auto leaf = [&](const Expr& expr) { return leaf_value(expr, value_of); };
  const auto operation = [](const ScalarOp& op, std::span<const KnownSize* const> values) -> KnownSize {
    if (!*values[0] || !*values[1]) return std::nullopt;
    return evaluate_integers(op.opcode, **values[0], **values[1]);
  };
  return fold_expression<KnownSize>(*dim.expr(), is_size_operation, leaf, operation);
}

}  // namespace

std::optional<std::int64_t> tessera::ir::evaluate_small(
    const Expr& size, const std::function<std::optional<std::int64_t>(const Var&)>& value_of) {
  int nodes_left = most_small_nodes;
  return small_value(size, value_of, nodes_left);
}

std::optional<std::int64_t> tessera::ir::evaluate(
    const Dim& dim, const std::function<std::optional<std::int64_t>(const Var&)>& value_of) {
  if (dim.is_constant()) return dim.value();
  if (const auto number = computed(dim, value_of)) return number;
  const Dim value = substitute(dim, [&](const Var& var) -> std::optional<Dim> {
    const auto number = value_of(var);
    return number ? std::optional<Dim>(*number) : std::nullopt;
  });
  if (!value.is_constant()) return std::nullopt;
  return value.value();
}

std::string tessera::ir::to_text(const Dim& dim) {
  return dim.is_constant() ? cat(dim.value()) : print_line(*dim.expr(), 200);
}

std::string tessera::ir::to_text(const Shape& shape) { return cat("[", join(shape, ", "), "]"); }

Shape tessera::ir::shape_of(std::span<const std::int64_t> dims) { return {dims.begin(), dims.end()}; }

std::optional<SmallVector<std::int64_t, 4>> tessera::ir::constant_shape(const Shape& shape) {
  SmallVector<std::int64_t, 4> out;
  for (const Dim& dim : shape) {
    if (!dim.is_constant()) return std::nullopt;
    out.push_back(dim.value());
  }
  return out;
}

std::optional<std::int64_t> tessera::ir::element_count(const Shape& shape) {
  const auto dims = constant_shape(shape);
  return dims ? checked_product(*dims) : std::nullopt;
}

SizeName tessera::ir::split_size_name(std::string_view name) {
  const std::size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos || underscore == 0 || underscore + 1 == name.size())
    return {name, 0};
  const std::string_view digits = name.substr(underscore + 1);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || digits[0] == '0')
    return {name, 0};
  return {name.substr(0, underscore), number};
}

bool tessera::ir::size_symbol_less(const Var& a, const Var& b) {
  const SizeName x = split_size_name(a.name), y = split_size_name(b.name);
  if (x.base != y.base) return x.base < y.base;
  if (x.number != y.number) return x.number < y.number;
  return a.id < b.id;
}
