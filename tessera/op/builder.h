// Builder: how gradients and decompositions write code, without knowing for whom. The IR (ir_builder.h) and
// the recorder of tensors implement it.
//
// Errors are sticky: a call that fails makes an empty Value, a call with an empty Value makes another one,
// and status() tells the first error. So formulas read as formulas: `dy * y * (1.0 - y)`.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// A value in a builder. Cheap to copy; empty where there is none.
struct Value {
  Builder* builder = nullptr;
  std::uint32_t id = 0;

  explicit operator bool() const { return builder != nullptr; }
  /// Of an empty value: that of a number, so that a formula that has failed goes on to its end.
  [[nodiscard]] const ValueType& type() const;
  [[nodiscard]] Dtype dtype() const { return type().dtype; }
  [[nodiscard]] const Shape& shape() const { return type().shape; }
  [[nodiscard]] std::size_t rank() const { return type().rank(); }
};

/// Indices of one axis: from `begin` up to, not with, `end`.
struct AxisRange {
  std::size_t axis = 0;
  Dim begin, end;
};

/// Which elements of a value a part is: those update_slice writes by these attributes, within `ranges`.
struct ValuePart {
  Attributes attributes;
  std::vector<AxisRange> ranges;
};

/// The gradient of a part: `update` where the part is, written over zeros or over what other parts were
/// written into.
struct PartGradient {
  Value update;
  std::shared_ptr<const ValuePart> part;
  Value into = {};  ///< empty if these are zeros
};

class Builder {
 public:
  virtual ~Builder() = default;

  /// A call with one result. Attributes may leave out defaults; inputs of kind scalar that are left out at
  /// the end get theirs.
  Value call(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes = {});
  Value call(std::string_view op, std::span<const Value> inputs, Attributes attributes = {});
  /// The same where the card is known.
  Value call(const Card& card, std::span<const Value> inputs, Attributes attributes = {});
  /// A call with several results.
  Values call_all(std::string_view op, std::span<const Value> inputs, Attributes attributes = {});
  Values call_all(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return call_all(op, std::span(inputs.begin(), inputs.size()), std::move(attributes));
  }

  /// A number of rank 0 that never changes.
  Value constant(double value, Dtype dtype);
  /// A size, which may be symbolic, as an i64 of rank 0.
  Value extent(const Dim& size);
  [[nodiscard]] const ValueType& type(Value value) const { return *types_[value.id]; }

  /// The gradient of a part of a value of this type: zeros, with `update` where the part is.
  Value part_gradient(const ValueType& type, Value update, ValuePart part);
  /// What the builder knows of such a gradient, which may be written together with others; null of any other
  /// value. Valid until more is built.
  [[nodiscard]] const PartGradient* find_part_gradient(Value value) const;
  /// Says of a value that was written elsewhere what part_gradient would have made it.
  void add_part_gradient(Value value, PartGradient gradient);
  /// The sum of two gradients of one value. Those of parts that do not overlap are written into the same
  /// zeros: nothing is added then, and a zero keeps its sign.
  Value add_gradients(Value a, Value b);

  /// Whether everything so far could be built.
  [[nodiscard]] Result<void> status() const;

 protected:
  Value add_value(ValueType type);
  /// One more value of the type of another.
  Value add_value_like(Value other);
  /// Empty, and the error is remembered if it is the first.
  Value fail(Error error);

  /// Writes a call that was checked; as many results as `types`. `attributes` are complete.
  virtual Result<Values> emit(const Card& card, std::span<const Value> inputs, Attributes attributes,
                              ValueTypes types) = 0;
  /// The same for a call without attributes whose one result has the type of `like`.
  virtual Result<Value> emit_like(const Card& card, std::span<const Value> inputs, Value like);
  /// The result of an equal call that was written before, if the builder looks for such. `attributes` are
  /// complete.
  virtual Value find_equal(const Card&, std::span<const Value>, const Attributes&) { return {}; }
  /// Writes a call that the builder knows the type of, which has one result; empty if it does not know it.
  /// `attributes` are complete.
  virtual Value emit_known(const Card&, std::span<const Value>, const Attributes&) { return {}; }
  virtual Value emit_constant(double value, Dtype dtype) = 0;
  virtual Value emit_extent(const Dim& size) = 0;
  /// Where to write what had to be assumed about symbols; null if nothing may be.
  virtual Assumptions* assumptions() { return nullptr; }

 private:
  Values call_all(const Card& card, std::span<const Value> inputs, Attributes attributes);
  /// `part` written into `others`; empty if they are not known to be gradients of parts that do not overlap.
  Value joined_parts(Value others, Value part);

  std::unordered_map<std::uint32_t, PartGradient> part_gradients_;  ///< by the id of the value
  std::vector<const ValueType*> types_;                             ///< by value
  std::deque<ValueType> distinct_types_;  ///< a deque, so that references stay valid while more is built
  std::optional<Error> error_;
};

namespace detail {
[[nodiscard]] const ValueType& type_of_nothing();
}
inline const ValueType& Value::type() const {
  return builder != nullptr ? builder->type(*this) : detail::type_of_nothing();
}

// Operators on values of one builder; a number takes the dtype of the other side.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);

// What gradients and decompositions often need.

/// A call of an op with one operand.
Value unary(std::string_view op, Value x);
Value reshape(Value x, const Shape& shape);
Value broadcast_to(Value x, const Shape& shape);
Value transpose(Value x, std::span<const std::int64_t> permutation);
/// Swaps the last two axes.
Value transpose_matrix(Value x);
Value sum(Value x, std::vector<std::int64_t> axes, bool keepdims);
Value cast(Value x, Dtype dtype);
Value where(Value condition, Value a, Value b);
Value matmul(Value a, Value b);
/// x[start:stop] along one axis (families/parts.cpp says what positions mean).
Value slice(Value x, std::int64_t axis, const Dim& start, const Dim& stop);
/// Element i is start + i, of i64.
Value range(Builder& b, const Dim& start, const Dim& count);
/// A tensor of one number.
Value full(Builder& b, double value, const ValueType& type);
Value zeros_like(Value x);
/// A size as a number of rank 0, also where it is symbolic.
Value size_as_number(Builder& b, const Dim& size, Dtype dtype);
/// Undoes broadcasting: sums `x` over the axes in which `shape` has 1 or nothing.
Value sum_to(Value x, const Shape& shape);

/// One call whose gradient is asked for.
class GradientCall {
 public:
  GradientCall(Builder& builder, const CallInfo& call, std::span<const Value> inputs,
               std::span<const Value> results, std::span<const Value> result_gradients)
      : b(builder), info(call), inputs_(inputs), results_(results), result_gradients_(result_gradients) {}

  Builder& b;
  const CallInfo& info;

  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] Value x(std::size_t i = 0) const { return inputs_[i]; }
  [[nodiscard]] Value y(std::size_t i = 0) const { return results_[i]; }
  /// The gradient of result i; zeros if nothing depends on it.
  [[nodiscard]] Value dy(std::size_t i = 0) const;
  [[nodiscard]] bool has_dy(std::size_t i) const { return static_cast<bool>(result_gradients_[i]); }

 private:
  std::span<const Value> inputs_;
  std::span<const Value> results_;
  std::span<const Value> result_gradients_;
};

}  // namespace tessera::op
