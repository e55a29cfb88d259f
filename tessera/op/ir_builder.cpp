#include "tessera/op/ir_builder.h"

#include <bit>

#include "tessera/base/text.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// The integer nearest to a number within the range of a dtype; an infinite bound becomes the end of the
/// range.
std::int64_t saturated(double value, Dtype dtype) {
  std::byte memory[8];
  storer<double>(dtype)(memory, 0, 1, 1, &value);
  SignedWide out;
  loader<SignedWide>(dtype)(memory, 0, 1, 1, &out);
  return out.v;
}

}  // namespace

Value IrBuilder::add(ir::ExprRef expr, ValueType type) {
  const Value value = add_value(std::move(type));
  exprs_.push_back(std::move(expr));
  return value;
}

Dim IrBuilder::size(std::string name, ir::Range range) {
  dims_.push_back(ir::size_symbol(std::move(name), range));
  return Dim(dims_.back());
}

Value IrBuilder::parameter(std::string name, ValueType type) {
  params_.push_back(ir::variable(std::move(name), ir_type(type), span_));
  return add(params_.back(), std::move(type));
}

Value IrBuilder::adopt_parameter(Ref<ir::Var> var, ValueType type) {
  params_.push_back(var);
  return add(std::move(var), std::move(type));
}

Value IrBuilder::import(ir::ExprRef expr, ValueType type) { return add(std::move(expr), std::move(type)); }

Value IrBuilder::scalar_parameter(Dtype dtype, double value) {
  return add(ir::param(next_slot_++, dtype, value), {dtype, {}});
}

const ir::TypeRef& IrBuilder::shared_type(const ValueType& type) {
  if (last_shared_ == nullptr || last_type_ != type) {
    last_type_ = type;
    last_shared_ = ir_type(type);
  }
  return last_shared_;
}

Values IrBuilder::append(ir::ExprRef value, const ValueTypes& types) {
  std::vector<Ref<ir::Var>> targets;
  Values out;
  targets.reserve(types.size());
  out.reserve(types.size());
  for (const ValueType& type : types) {
    targets.push_back(ir::variable(cat("t", exprs_.size()), shared_type(type), span_));
    out.push_back(add(targets.back(), type));
  }
  body_.push_back(ir::assign(std::move(targets), std::move(value), span_));
  return out;
}

const ir::Call& IrBuilder::append_call(const Card& card, std::span<const Value> inputs, Attributes attributes,
                                       std::vector<Ref<ir::Var>> targets) {
  std::vector<ir::ExprRef> args;
  args.reserve(inputs.size());
  for (Value input : inputs) {
    TESSERA_CHECK(input.builder == this, "a value of another builder");
    args.push_back(expr(input));
  }
  auto call = ir::call(std::string(card.name), std::move(args), std::move(attributes), span_);
  const ir::Call& out = *call;
  body_.push_back(ir::assign(std::move(targets), std::move(call), span_));
  return out;
}

Result<Values> IrBuilder::emit(const Card& card, std::span<const Value> inputs, Attributes attributes,
                               ValueTypes types) {
  std::vector<Ref<ir::Var>> targets;
  Values out;
  targets.reserve(types.size());
  out.reserve(types.size());
  for (ValueType& type : types) {
    targets.push_back(ir::variable(cat("t", exprs_.size()), shared_type(type), span_));
    out.push_back(add(targets.back(), std::move(type)));
  }
  const ir::Call& call = append_call(card, inputs, std::move(attributes), std::move(targets));
  if (merges_ && out.size() == 1) written_.add(card, inputs, call.attrs, out[0]);
  return out;
}

Result<Value> IrBuilder::emit_like(const Card& card, std::span<const Value> inputs, Value like) {
  if (!merges_) return Builder::emit_like(card, inputs, like);
  const auto* known = ir::as<ir::Var>(*expr(like));
  const bool is_tensor = known != nullptr && ir::is<ir::TensorType>(known->type);
  std::vector<Ref<ir::Var>> targets{
      ir::variable(cat("t", exprs_.size()), is_tensor ? known->type : shared_type(like.type()), span_)};
  const Value out = add_value_like(like);
  exprs_.push_back(targets[0]);
  written_.add(card, inputs, append_call(card, inputs, {}, std::move(targets)).attrs, out);
  return out;
}

Value IrBuilder::find_equal(const Card& card, std::span<const Value> inputs, const Attributes& attributes) {
  return merges_ ? written_.find(card, inputs, attributes) : Value();
}

Value IrBuilder::emit_constant(double value, Dtype dtype) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (const Constant& known : constants_)
    if (known.bits == bits && known.dtype == dtype) return known.value;
  ir::ExprRef constant;
  if (ir::is_float(dtype))
    constant = ir::float_const(value, dtype);
  else if (dtype == Dtype::boolean)
    constant = ir::bool_const(value != 0);
  else
    constant = ir::int_const(saturated(value, dtype), dtype);
  const Value out = add(std::move(constant), {dtype, {}});
  constexpr std::size_t few = 16;  // more would cost more to look through than to write again
  if (merges_ && constants_.size() < few) constants_.push_back({bits, dtype, out});
  return out;
}

Value IrBuilder::emit_extent(const Dim& size) {
  ir::ExprRef expr = size.is_constant() ? ir::ExprRef(ir::int_const(size.value())) : size.expr();
  return add(std::move(expr), {Dtype::i64, {}});
}

std::vector<Ref<ir::Assign>> IrBuilder::cut(std::size_t begin) {
  const auto first = body_.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<Ref<ir::Assign>> out(first, body_.end());
  body_.erase(first, body_.end());
  return out;
}

Result<ir::FunctionRef> IrBuilder::function(std::string name, std::span<const Value> results) const {
  TESSERA_TRY(status());
  ir::FunctionParts parts{.name = std::move(name), .dims = dims_, .params = params_, .body = body_};
  for (Value result : results) parts.results.push_back(expr(result));
  return ir::function(std::move(parts));
}

std::optional<ValueType> tessera::op::value_type(const ir::Type& type) {
  if (const auto* tensor = ir::as<ir::TensorType>(type)) return ValueType{tensor->dtype, tensor->shape};
  if (const auto* scalar = ir::as<ir::ScalarType>(type)) return ValueType{scalar->dtype, {}};
  return std::nullopt;
}

ir::TypeRef tessera::op::ir_type(const ValueType& type) { return ir::tensor_type(type.dtype, type.shape); }

std::optional<ValueType> tessera::op::operand_type(const ir::Expr& operand) {
  if (const auto* var = ir::as<ir::Var>(operand)) return value_type(*var->type);
  if (const auto* constant = ir::as<ir::Dense>(operand)) return value_type(*constant->type);
  if (const auto dtype = ir::scalar_dtype(operand)) return ValueType{*dtype, {}};
  return std::nullopt;
}
