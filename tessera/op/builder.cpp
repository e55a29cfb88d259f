#include "tessera/op/builder.h"

#include <algorithm>

#include "tessera/ir/dim.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::op;

namespace {

Value binary(const Card& card, Value a, Value b) {
  if (!a || !b) return {};
  const Value inputs[] = {a, b};
  return a.builder->call(card, inputs);
}

const Card& known(std::string_view op) {
  const Card* card = find_card(op);
  TESSERA_CHECK(card != nullptr, cat("there is no op '", op, "'"));
  return *card;
}

/// The input whose type the result has: for element-wise calls of numbers and values of one type, which are
/// most of those that gradients write. Empty if it is not that simple.
Value type_giver(const Card& card, std::span<const Value> inputs) {
  if (card.infer != nullptr || card.result != ResultDtype::same || !card.attributes.empty() ||
      inputs.size() != card.inputs.size() || inputs.empty())
    return {};
  Value out = inputs[0];
  for (Value input : inputs)
    if (input && input.rank() > out.rank()) out = input;
  if (!out || !card.T.contains(out.dtype()) || out.rank() > max_rank) return {};
  const ValueType& type = out.type();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || card.inputs[i].kind != InputKind::tensor || card.inputs[i].type != "T") return {};
    const ValueType& other = inputs[i].type();
    if (&other != &type && other != type && (other.rank() != 0 || other.dtype != type.dtype)) return {};
  }
  return out;
}

/// The dtype of a scalar that was left out: what its type names, else that of the inputs it must agree with,
/// else that of the first input.
Dtype default_dtype(const Card& card, std::span<const Value> inputs, const Input& spec) {
  if (const auto named = ir::parse_dtype(spec.type)) return *named;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (card.inputs[i].type == spec.type) return inputs[i].dtype();
  return inputs[0].dtype();
}

/// Whether two parts of one value have no element in common, as far as that can be proven.
bool are_apart(std::span<const AxisRange> a, std::span<const AxisRange> b) {
  return std::any_of(a.begin(), a.end(), [&](const AxisRange& one) {
    return std::any_of(b.begin(), b.end(), [&](const AxisRange& other) {
      return one.axis == other.axis &&
             (ir::provably_at_least(one.begin, other.end) || ir::provably_at_least(other.begin, one.end));
    });
  });
}

Value number_like(Value x, double value) { return x ? x.builder->constant(value, x.dtype()) : Value(); }

}  // namespace

const ValueType& op::detail::type_of_nothing() {
  static const auto& number = *new ValueType{Dtype::f32, {}};  // never destroyed
  return number;
}

Value Builder::add_value(ValueType type) {
  distinct_types_.push_back(std::move(type));
  types_.push_back(&distinct_types_.back());
  return {this, static_cast<std::uint32_t>(types_.size() - 1)};
}

Value Builder::add_value_like(Value other) {
  types_.push_back(types_[other.id]);
  return {this, static_cast<std::uint32_t>(types_.size() - 1)};
}

Result<Value> Builder::emit_like(const Card& card, std::span<const Value> inputs, Value like) {
  return TESSERA_TRY(emit(card, inputs, {}, {like.type()}))[0];
}

Value Builder::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return {};
}

Result<void> Builder::status() const {
  if (error_) return *error_;
  return {};
}

Value Builder::constant(double value, Dtype dtype) { return emit_constant(value, dtype); }

Value Builder::extent(const Dim& size) { return emit_extent(size); }

Value Builder::call(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes) {
  return call(op, std::span(inputs.begin(), inputs.size()), std::move(attributes));
}

Value Builder::call(std::string_view op, std::span<const Value> inputs, Attributes attributes) {
  const Card* card = find_card(op);
  if (card == nullptr) return fail(Error(ErrorCode::not_found, cat("there is no op '", op, "'")));
  return call(*card, inputs, std::move(attributes));
}

Value Builder::call(const Card& card, std::span<const Value> inputs, Attributes attributes) {
  if (attributes.empty()) {
    if (const Value like = type_giver(card, inputs)) {
      if (const Value known = find_equal(card, inputs, attributes)) return known;
      auto result = emit_like(card, inputs, like);
      return result ? *result : fail(std::move(result).error());
    }
  }
  const Values results = call_all(card, inputs, std::move(attributes));
  return results.empty() ? Value() : results[0];
}

Values Builder::call_all(std::string_view op, std::span<const Value> inputs, Attributes attributes) {
  const Card* card = find_card(op);
  if (card == nullptr) return {fail(Error(ErrorCode::not_found, cat("there is no op '", op, "'")))};
  return call_all(*card, inputs, std::move(attributes));
}

Values Builder::call_all(const Card& card, std::span<const Value> inputs, Attributes attributes) {
  for (Value input : inputs)
    if (!input) return {Value()};
  SmallVector<Value, 4> all(inputs.begin(), inputs.end());
  // Scalars left out at the end take their defaults.
  while (!all.empty() && all.size() < card.inputs.size() &&
         card.inputs[all.size()].kind == InputKind::scalar) {
    const Input& spec = card.inputs[all.size()];
    all.push_back(constant(spec.otherwise, default_dtype(card, all, spec)));
  }
  auto complete = complete_attributes(card, std::move(attributes));
  if (!complete) return {fail(std::move(complete).error())};
  if (const Value known = find_equal(card, all, *complete)) return {known};
  if (const Value written = emit_known(card, all, *complete)) return {written};
  SmallVector<ValueType, 4> types;
  for (Value input : all) types.push_back(input.type());
  auto inferred = infer(card, types, *complete, assumptions());
  if (!inferred) return {fail(std::move(inferred).error())};
  auto results = emit(card, all, *std::move(complete), *std::move(inferred));
  if (!results) return {fail(std::move(results).error())};
  return *std::move(results);
}

Value Builder::part_gradient(const ValueType& type, Value update, ValuePart part) {
  const Value out = call("update_slice", {full(*this, 0, type), update}, part.attributes);
  if (out) add_part_gradient(out, {update, std::make_shared<const ValuePart>(std::move(part))});
  return out;
}

const PartGradient* Builder::find_part_gradient(Value value) const {
  const auto known = part_gradients_.find(value.id);
  return known == part_gradients_.end() ? nullptr : &known->second;
}

void Builder::add_part_gradient(Value value, PartGradient gradient) {
  part_gradients_.insert_or_assign(value.id, std::move(gradient));
}

Value Builder::add_gradients(Value a, Value b) {
  if (!a || !b) return {};
  if (const Value out = joined_parts(a, b)) return out;
  if (const Value out = joined_parts(b, a)) return out;
  return a + b;
}

Value Builder::joined_parts(Value others, Value part) {
  const PartGradient* const one = find_part_gradient(part);
  if (one == nullptr || one->into || others.type() != part.type()) return {};
  PartGradient out = *one;
  for (Value other = others; other;) {
    const PartGradient* const before = find_part_gradient(other);
    if (before == nullptr || !are_apart(before->part->ranges, out.part->ranges)) return {};
    other = before->into;
  }
  static const Card& card = known("update_slice");
  const Value inputs[] = {others, out.update};
  // Parts are written over and over by attributes that are complete: nothing has to be looked at then.
  Value value = find_equal(card, inputs, out.part->attributes);
  if (!value) value = emit_known(card, inputs, out.part->attributes);
  if (!value) value = call(card, inputs, out.part->attributes);
  out.into = others;
  if (value) add_part_gradient(value, std::move(out));
  return value;
}

Value tessera::op::operator+(Value a, Value b) {
  static const Card& card = known("add");
  return binary(card, a, b);
}
Value tessera::op::operator-(Value a, Value b) {
  static const Card& card = known("sub");
  return binary(card, a, b);
}
Value tessera::op::operator*(Value a, Value b) {
  static const Card& card = known("mul");
  return binary(card, a, b);
}
Value tessera::op::operator/(Value a, Value b) {
  static const Card& card = known("div");
  return binary(card, a, b);
}
Value tessera::op::operator-(Value a) { return unary("neg", a); }
Value tessera::op::operator+(Value a, double b) { return a + number_like(a, b); }
Value tessera::op::operator-(Value a, double b) { return a - number_like(a, b); }
Value tessera::op::operator*(Value a, double b) { return a * number_like(a, b); }
Value tessera::op::operator/(Value a, double b) { return a / number_like(a, b); }
Value tessera::op::operator+(double a, Value b) { return number_like(b, a) + b; }
Value tessera::op::operator-(double a, Value b) { return number_like(b, a) - b; }
Value tessera::op::operator*(double a, Value b) { return number_like(b, a) * b; }
Value tessera::op::operator/(double a, Value b) { return number_like(b, a) / b; }

Value tessera::op::unary(std::string_view op, Value x) { return x ? x.builder->call(op, {x}) : Value(); }

Value tessera::op::reshape(Value x, const Shape& shape) {
  if (!x || x.shape() == shape) return x;
  return x.builder->call("reshape", {x}, {{"shape", shape}});
}

Value tessera::op::broadcast_to(Value x, const Shape& shape) {
  if (!x || x.shape() == shape) return x;
  return x.builder->call("broadcast_to", {x}, {{"shape", shape}});
}

Value tessera::op::transpose(Value x, std::span<const std::int64_t> permutation) {
  if (!x) return x;
  static const Card& card = known("transpose");
  Attributes attributes;
  attributes.set("permutation", std::vector<std::int64_t>(permutation.begin(), permutation.end()));
  return x.builder->call(card, std::span(&x, 1), std::move(attributes));
}

Value tessera::op::transpose_matrix(Value x) {
  if (!x) return x;
  std::vector<std::int64_t> permutation(x.rank());
  for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(x, permutation);
}

Value tessera::op::sum(Value x, std::vector<std::int64_t> axes, bool keepdims) {
  if (!x || axes.empty()) return x;  // the op takes an empty list for all axes
  return x.builder->call("sum", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}

Value tessera::op::cast(Value x, Dtype dtype) {
  if (!x || x.dtype() == dtype) return x;
  return x.builder->call("cast", {x}, {{"dtype", dtype}});
}

Value tessera::op::where(Value condition, Value a, Value b) {
  return condition ? condition.builder->call("where", {condition, a, b}) : Value();
}

Value tessera::op::matmul(Value a, Value b) {
  static const Card& card = known("matmul");
  return binary(card, a, b);
}

Value tessera::op::slice(Value x, std::int64_t axis, const Dim& start, const Dim& stop) {
  if (!x) return x;
  return x.builder->call("slice", {x},
                         {{"starts", Shape{start}}, {"stops", Shape{stop}}, {"axes", std::vector{axis}}});
}

Value tessera::op::range(Builder& b, const Dim& start, const Dim& count) {
  return b.call("arange", {b.extent(start), b.constant(1, Dtype::i64)}, {{"count", Shape{count}}});
}

Value tessera::op::full(Builder& b, double value, const ValueType& type) {
  return b.call("full", {b.constant(value, type.dtype)}, {{"shape", type.shape}});
}

Value tessera::op::zeros_like(Value x) { return x ? full(*x.builder, 0, x.type()) : x; }

Value tessera::op::size_as_number(Builder& b, const Dim& size, Dtype dtype) {
  if (size.is_constant()) return b.constant(static_cast<double>(size.value()), dtype);
  return b.call("sum", {full(b, 1, {dtype, {size}})});
}

Value tessera::op::sum_to(Value x, const Shape& shape) {
  if (!x || x.shape() == shape) return x;
  const std::size_t lead = x.rank() - shape.size();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == Dim(1) && x.shape()[i] != Dim(1)))
      axes.push_back(static_cast<std::int64_t>(i));
  const bool keepdims =
      axes.size() != lead || (lead != 0 && axes.back() != static_cast<std::int64_t>(lead) - 1);
  return reshape(sum(x, std::move(axes), keepdims), shape);
}

Value GradientCall::dy(std::size_t i) const {
  if (result_gradients_[i]) return result_gradients_[i];
  return zeros_like(results_[i]);
}
