// Writes the calls of a builder as statements of an IR function.
#pragma once

#include <string>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/op/builder.h"
#include "tessera/op/written_calls.h"

namespace tessera::op {

/// Whether a call that was written before is written again.
enum class EqualCalls : bool { write_again, merge };

class IrBuilder : public Builder {
 public:
  explicit IrBuilder(EqualCalls equal_calls = EqualCalls::write_again)
      : merges_(equal_calls == EqualCalls::merge) {}

  /// A size symbol of the function.
  Dim size(std::string name, ir::Range range = {});
  /// A parameter.
  Value parameter(std::string name, ValueType type);
  /// Any operand: a variable of code that goes before, a constant, a scalar. `expr` has this type.
  Value import(ir::ExprRef expr, ValueType type);
  /// A scalar parameter: the next slot, or `slot`.
  Value scalar_parameter(Dtype dtype, double value = 0);

  // Parts of another function, taken over as they are.
  void adopt_size(Ref<ir::Var> size) { dims_.push_back(std::move(size)); }
  Value adopt_parameter(Ref<ir::Var> var, ValueType type);
  /// A statement; its targets are made known by import().
  void adopt(Ref<ir::Assign> statement) { body_.push_back(std::move(statement)); }
  /// Says that an adopted statement is this call; equal ones may be merged with it.
  void remember(const Card& card, std::span<const Value> inputs, const Attributes& attributes, Value result) {
    if (merges_ && !written_.find(card, inputs, attributes)) written_.add(card, inputs, attributes, result);
  }
  /// Whether it is known that no two statements are equal calls.
  [[nodiscard]] bool is_merged() const { return merges_ && written_.size() == body_.size(); }

  /// The IR operand that stands for a value.
  [[nodiscard]] const ir::ExprRef& expr(Value value) const { return exprs_[value.id]; }
  /// Appends a statement that binds `value`, which has these types.
  Values append(ir::ExprRef value, const ValueTypes& types);

  /// The span of the statements that follow.
  void at(ir::Span span) { span_ = std::move(span); }
  [[nodiscard]] const std::vector<Ref<ir::Assign>>& statements() const { return body_; }
  /// Takes the statements from the one at `begin` on away: they become the body of a region.
  [[nodiscard]] std::vector<Ref<ir::Assign>> cut(std::size_t begin);
  [[nodiscard]] const std::vector<Ref<ir::Var>>& size_symbols() const { return dims_; }
  [[nodiscard]] const Assumptions& assumed() const { return assumptions_; }

  /// The function of everything so far, or the first error.
  [[nodiscard]] Result<ir::FunctionRef> function(std::string name, std::span<const Value> results) const;

 protected:
  Result<Values> emit(const Card& card, std::span<const Value> inputs, Attributes attributes,
                      ValueTypes types) override;
  Result<Value> emit_like(const Card& card, std::span<const Value> inputs, Value like) override;
  Value find_equal(const Card& card, std::span<const Value> inputs, const Attributes& attributes) override;
  Value emit_constant(double value, Dtype dtype) override;
  Value emit_extent(const Dim& size) override;
  Assumptions* assumptions() override { return &assumptions_; }

 private:
  Value add(ir::ExprRef expr, ValueType type);
  const ir::TypeRef& shared_type(const ValueType& type);
  /// The call it appended.
  const ir::Call& append_call(const Card& card, std::span<const Value> inputs, Attributes attributes,
                              std::vector<Ref<ir::Var>> targets);

  std::vector<ir::ExprRef> exprs_;
  std::vector<Ref<ir::Var>> dims_;
  std::vector<Ref<ir::Var>> params_;
  std::vector<Ref<ir::Assign>> body_;
  Assumptions assumptions_;
  ir::Span span_;
  ValueType last_type_;  ///< neighbours mostly have one type: they share its node
  ir::TypeRef last_shared_;
  std::uint32_t next_slot_ = 0;

  struct Constant {
    std::uint64_t bits;
    Dtype dtype;
    Value value;
  };
  bool merges_;
  WrittenCalls written_;
  std::vector<Constant> constants_;  ///< the first few, if equal calls are merged
};

/// The type of an IR type; nothing for tuples.
[[nodiscard]] std::optional<ValueType> value_type(const ir::Type& type);
[[nodiscard]] ir::TypeRef ir_type(const ValueType& type);
/// The type of an operand: a variable, a constant, a parameter or a scalar expression.
[[nodiscard]] std::optional<ValueType> operand_type(const ir::Expr& operand);

}  // namespace tessera::op
