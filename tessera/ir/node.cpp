#include "tessera/ir/node.h"

#include <array>
#include <atomic>
#include <cmath>

#include "tessera/base/check.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/half.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/size_form.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

void destroy(const Node* node) {
  visit_node(*node, [](const auto& concrete) { delete &concrete; });
}

/// A list of nodes whose last reference went away while another one was being destroyed. Freeing must not
/// allocate, and a dead node's place in its source is not asked for: the address of the next node is kept
/// there.
thread_local const Node* dying = nullptr;
thread_local bool is_destroying = false;

void link_before(Span& span, const Node* next) {
  const auto bits = reinterpret_cast<std::uint64_t>(next);
  span.line = static_cast<std::uint32_t>(bits);
  span.column = static_cast<std::uint32_t>(bits >> 32);
}

const Node* next_of(const Span& span) {
  return reinterpret_cast<const Node*>(std::uint64_t{span.column} << 32 | span.line);
}

std::uint64_t next_variable_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

double rounded_to(double value, Dtype dtype) {
  if (std::isnan(value)) return float_from_bits(float_bits(value, dtype), dtype);
  switch (dtype) {
    case Dtype::f32:
      return static_cast<float>(value);
    case Dtype::f16:
      return f16_to_float(double_to_f16(value));
    case Dtype::bf16:
      return bf16_to_float(double_to_bf16(value));
    default:
      return value;
  }
}

}  // namespace

void Node::release_last(const Node* node) {
  link_before(const_cast<Node*>(node)->span_, dying);
  dying = node;
  if (is_destroying) return;
  is_destroying = true;
  while (dying != nullptr) {
    const Node* next = std::exchange(dying, next_of(dying->span_));
    destroy(next);
  }
  is_destroying = false;
}

std::string_view tessera::ir::to_string(NodeKind kind) {
  static constexpr std::array<std::string_view, node_kind_count> names{
      "scalar_type", "tensor_type", "tuple_type", "var",  "int_const", "float_const", "bool_const",
      "dense",       "param",       "scalar_op",  "call", "tuple",     "item",        "invoke",
      "if",          "switch",      "while",      "for",  "assign",    "function",    "module"};
  return names[static_cast<std::size_t>(kind)];
}

Dim::Dim(ExprRef expr) {
  const auto* constant = as<IntConst>(expr);
  if (constant != nullptr && constant->dtype == Dtype::i64) {
    value_ = constant->value;
  } else {
    expr_ = std::move(expr);
  }
}

bool Dim::operator==(const Dim& other) const {
  if (is_constant() || other.is_constant())
    return is_constant() && other.is_constant() && value_ == other.value_;
  return same_size(*expr_, *other.expr_);
}

Ref<ScalarType> tessera::ir::scalar_type(Dtype dtype, Range range) {
  auto draft = std::make_unique<ScalarType>();
  draft->dtype = dtype;
  draft->range = range;
  return seal(std::move(draft));
}

Ref<TensorType> tessera::ir::tensor_type(Dtype dtype, Shape shape) {
  auto draft = std::make_unique<TensorType>();
  draft->dtype = dtype;
  draft->shape = std::move(shape);
  return seal(std::move(draft));
}

Ref<TupleType> tessera::ir::tuple_type(std::vector<TypeRef> elements) {
  auto draft = std::make_unique<TupleType>();
  draft->elements = std::move(elements);
  return seal(std::move(draft));
}

Ref<Var> tessera::ir::variable(std::string name, TypeRef type, Span span) {
  auto draft = std::make_unique<Var>(std::move(span));
  draft->name = name.empty() ? "v" : std::move(name);
  draft->type = std::move(type);
  draft->id = next_variable_id();
  return seal(std::move(draft));
}

Ref<Var> tessera::ir::size_symbol(std::string name, Range range) {
  return variable(std::move(name), scalar_type(Dtype::i64, range));
}

Ref<IntConst> tessera::ir::int_const(std::int64_t value, Dtype dtype) {
  auto draft = std::make_unique<IntConst>();
  draft->value = value;
  draft->dtype = dtype;
  return seal(std::move(draft));
}

Ref<FloatConst> tessera::ir::float_const(double value, Dtype dtype) {
  auto draft = std::make_unique<FloatConst>();
  draft->value = rounded_to(value, dtype);
  draft->dtype = dtype;
  return seal(std::move(draft));
}

Ref<BoolConst> tessera::ir::bool_const(bool value) {
  auto draft = std::make_unique<BoolConst>();
  draft->value = value;
  return seal(std::move(draft));
}

Ref<Dense> tessera::ir::dense(Ref<TensorType> type, Bytes data) {
  auto draft = std::make_unique<Dense>();
  draft->type = std::move(type);
  draft->data = std::move(data);
  return seal(std::move(draft));
}

Ref<Param> tessera::ir::param(std::uint32_t slot, Dtype dtype, double value) {
  auto draft = std::make_unique<Param>();
  draft->slot = slot;
  draft->dtype = dtype;
  draft->value = value;
  return seal(std::move(draft));
}

namespace {

ExprRef make_scalar_op(ScalarOpcode opcode, Dtype dtype, SmallVector<ExprRef, 2> operands, Span span) {
  TESSERA_CHECK(operands.size() == info(opcode).arity, "a scalar operation has the wrong number of operands");
  auto draft = std::make_unique<ScalarOp>(std::move(span));
  draft->opcode = opcode;
  draft->dtype = dtype;
  draft->operands = std::move(operands);
  return seal(std::move(draft));
}

}  // namespace

ExprRef tessera::ir::scalar_op(ScalarOpcode opcode, SmallVector<ExprRef, 2> operands, Span span) {
  const std::size_t carrier =
      opcode == ScalarOpcode::select ? 1 : 0;  // the operand whose dtype the result has
  TESSERA_CHECK(operands.size() > carrier, "a scalar operation needs operands");
  const Dtype dtype =
      info(opcode).makes_boolean ? Dtype::boolean : scalar_dtype(*operands[carrier]).value_or(Dtype::i64);
  return make_scalar_op(opcode, dtype, std::move(operands), std::move(span));
}

ExprRef tessera::ir::scalar_cast(Dtype to, ExprRef operand, Span span) {
  return make_scalar_op(ScalarOpcode::cast, to, {std::move(operand)}, std::move(span));
}

ExprRef tessera::ir::scalar_bitcast(Dtype to, ExprRef operand, Span span) {
  return make_scalar_op(ScalarOpcode::bitcast, to, {std::move(operand)}, std::move(span));
}

Ref<Call> tessera::ir::call(std::string op, std::vector<ExprRef> args, Attributes attrs, Span span) {
  auto draft = std::make_unique<Call>(std::move(span));
  draft->op = std::move(op);
  draft->args = std::move(args);
  draft->attrs = std::move(attrs);
  return seal(std::move(draft));
}

Ref<Tuple> tessera::ir::tuple(std::vector<ExprRef> elements) {
  auto draft = std::make_unique<Tuple>();
  draft->elements = std::move(elements);
  return seal(std::move(draft));
}

Ref<Item> tessera::ir::item(ExprRef tuple, std::uint32_t index) {
  auto draft = std::make_unique<Item>();
  draft->tuple = std::move(tuple);
  draft->index = index;
  return seal(std::move(draft));
}

Ref<Assign> tessera::ir::assign(std::vector<Ref<Var>> targets, ExprRef value, Span span) {
  auto draft = std::make_unique<Assign>(std::move(span));
  draft->targets = std::move(targets);
  draft->value = std::move(value);
  return seal(std::move(draft));
}

Ref<Assign> tessera::ir::assign(Ref<Var> target, ExprRef value, Span span) {
  return assign(std::vector<Ref<Var>>{std::move(target)}, std::move(value), std::move(span));
}

FunctionRef tessera::ir::function(FunctionParts parts, Span span) {
  auto draft = std::make_unique<Function>(std::move(span));
  draft->name = std::move(parts.name);
  draft->dims = std::move(parts.dims);
  draft->params = std::move(parts.params);
  draft->body = std::move(parts.body);
  draft->results = std::move(parts.results);
  return seal(std::move(draft));
}

Ref<Module> tessera::ir::module(std::vector<FunctionRef> functions) {
  auto draft = std::make_unique<Module>();
  draft->functions = std::move(functions);
  return seal(std::move(draft));
}

std::optional<Dtype> tessera::ir::scalar_dtype(const Expr& expr) {
  if (const auto* op = as<ScalarOp>(expr)) return op->dtype;
  if (const auto* constant = as<IntConst>(expr)) return constant->dtype;
  if (const auto* constant = as<FloatConst>(expr)) return constant->dtype;
  if (const auto* constant = as<Param>(expr)) return constant->dtype;
  if (is<BoolConst>(expr)) return Dtype::boolean;
  if (const auto* var = as<Var>(expr))
    if (const auto* type = as<ScalarType>(var->type)) return type->dtype;
  return std::nullopt;
}
