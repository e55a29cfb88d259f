#include "tessera/engine/lift.h"

#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/engine/node_to_ir.h"
#include "tessera/engine/record.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::engine;
using op::Value;
using op::Values;

namespace {

/// Follows the order in which PlanKey writes sizes.
class Lifting {
 public:
  Lifting(const Needed& needed, const PlanKey& key, const SizeRules& rules)
      : needed_(needed), key_(key), rules_(rules) {}

  Result<Lifted> run(std::span<const std::uint32_t> steps) {
    for (std::size_t s = 0; s < rules_.symbol_count(); ++s)
      symbols_.push_back(builder_.size(cat("d", s), {SizeRules::least, std::nullopt}));
    const std::size_t count = steps.empty() ? needed_.size() : steps.size();
    for (std::uint32_t i = 0; i < count; ++i) TESSERA_TRY(write(steps.empty() ? i : steps[i], i));
    TESSERA_CHECK(position_ == rules_.rules().size(), "sizes were lifted in another order than keyed");
    Lifted out{.function = TESSERA_TRY(builder_.function("plan", results_)), .results = std::move(kept_)};
    if (!builder_.assumed().equal.empty())
      return Error(ErrorCode::unsupported, "the sizes cannot change independently");
    return out;
  }

 private:
  op::Dim next_size() {
    const SizeRule& rule = rules_.rules()[position_++];
    if (rule.is_constant()) return rule.number;
    return op::Dim(rule.factor) * symbols_[rule.symbol] + op::Dim(rule.number);
  }
  op::Shape next_shape(std::size_t rank) {
    op::Shape out;
    for (std::size_t i = 0; i < rank; ++i) out.push_back(next_size());
    return out;
  }

  Result<void> write(std::uint32_t step, std::uint32_t local) {
    const Node& node = needed_.node(step);
    builder_.at(span_of(node));
    Values inputs = operands(step);
    op::Attributes attributes = next_attributes(node);
    op::ValueTypes extra_types;
    for (std::size_t k = 1; node.extra != nullptr && k < node.extra->results.size(); ++k) {
      const op::ValueType& type = node.extra->results[k];
      extra_types.push_back({type.dtype, next_shape(type.rank())});
    }
    const op::ValueType type{node.dtype, next_shape(node.rank)};
    const Values values = TESSERA_TRY(value_of(step, inputs, std::move(attributes)));
    TESSERA_TRY(check(values[0], type));
    for (std::size_t k = 0; k < extra_types.size(); ++k) TESSERA_TRY(check(values[k + 1], extra_types[k]));
    values_[step] = values;
    keep(step, local, values);
    return {};
  }

  /// Inference on symbols must give what was recorded as numbers.
  Result<void> check(Value value, const op::ValueType& expected) const {
    if (value.type() == expected) return {};
    return Error(ErrorCode::unsupported,
                 cat("the sizes ", value.type(), " and ", expected, " are not the same for all symbols"));
  }

  void keep(std::uint32_t step, std::uint32_t local, const Values& values) {
    if (!needed_.must_keep(step)) return;
    for (std::uint32_t k = 0; k < values.size(); ++k) {
      kept_.push_back({local, k});
      results_.push_back(values[k]);
    }
  }

  Values operands(std::uint32_t step) {
    const Node& node = needed_.node(step);
    Values out;
    std::size_t numbers = 0, operand = 0;
    for (const std::uint32_t from : needed_.from(step)) {
      const Node* input = node.input(operand);
      if (from != Needed::stored) {
        out.push_back(values_.at(from)[0]);
      } else if (input == nullptr) {
        const Dtype dtype = scalar_dtype_of(node, operand);
        const ScalarBits bits = node.scalar_at(numbers++);
        out.push_back(builder_.scalar_parameter(
            dtype, ir::is_float(dtype) ? bits.as_float() : static_cast<double>(bits.as_integer())));
      } else {
        out.push_back(input_value(*input));
      }
      ++operand;
    }
    return out;
  }

  Value input_value(const Node& input) {
    if (const auto known = inputs_.find(&input); known != inputs_.end()) return known->second;
    const Storage* storage = key_.inputs[inputs_.size()].storage;
    op::ValueType type{input.dtype, next_shape(input.rank)};
    if (!storage->layout.is_contiguous()) position_ += input.rank;  // strides
    return inputs_[&input] = builder_.parameter(cat("in", inputs_.size()), std::move(type));
  }

  op::Attributes next_attributes(const Node& node) {
    op::Attributes out = node.attributes();
    for (auto& [name, value] : out.mutable_entries())
      if (auto* shape = std::get_if<op::Shape>(&value)) *shape = next_shape(shape->size());
    return out;
  }

  Result<Values> value_of(std::uint32_t step, const Values& inputs, op::Attributes attributes) {
    const Node& node = needed_.node(step);
    if (node.is(Node::is_result)) return Values{values_.at(needed_.from(step)[0])[node.extra->result]};
    if (node.extra != nullptr && node.extra->function)
      return append_invoke(builder_, node, node.extra->function, inputs);
    if (node.extra != nullptr && node.extra->custom) return Values{inputs[0]};
    Values out = builder_.call_all(node.card->name, inputs, std::move(attributes));
    TESSERA_TRY(builder_.status());
    return out;
  }

  const Needed& needed_;
  const PlanKey& key_;
  const SizeRules& rules_;
  op::IrBuilder builder_;
  std::vector<op::Dim> symbols_;
  std::size_t position_ = 0;
  std::unordered_map<std::uint32_t, Values> values_;  ///< by step
  std::unordered_map<const Node*, Value> inputs_;
  std::vector<LiftedResult> kept_;
  Values results_;
};

}  // namespace

Result<Lifted> tessera::engine::lift(const Needed& needed, std::span<const std::uint32_t> steps,
                                     const PlanKey& key, const SizeRules& rules) {
  return Lifting(needed, key, rules).run(steps);
}
