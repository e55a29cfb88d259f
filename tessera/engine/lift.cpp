#include "tessera/engine/lift.h"

#include <algorithm>
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

/// What sizes are at most, by symbol, where a slice takes part of an axis that is a number.
using Bounds = std::vector<std::optional<std::int64_t>>;

/// Follows the order in which PlanKey writes sizes.
class Lifting {
 public:
  /// Raises the demands on `bounds` where the result needs them to be proven: then it has to be done again.
  Lifting(const Needed& needed, const PlanKey& key, const SizeRules& rules, StoredSlices inputs,
          Bounds& bounds)
      : needed_(needed), key_(key), rules_(rules), stored_slices_(inputs), bounds_(bounds) {}

  Result<Lifted> run(std::span<const std::uint32_t> steps) {
    for (std::size_t s = 0; s < rules_.symbol_count(); ++s)
      symbols_.push_back(builder_.size(cat("d", s), {SizeRules::least, bounds_[s]}));
    const std::size_t count = steps.empty() ? needed_.size() : steps.size();
    for (std::uint32_t i = 0; i < count; ++i) TESSERA_TRY(write(steps.empty() ? i : steps[i], i));
    TESSERA_CHECK(next_size_ == key_.extents().size() && next_position_ == key_.position_count,
                  "sizes were lifted in another order than keyed");
    out_.function = TESSERA_TRY(builder_.function("plan", results_));
    if (!builder_.assumed().equal.empty())
      return Error(ErrorCode::unsupported, "the sizes cannot change independently");
    return std::move(out_);
  }

  /// Whether a bound was demanded that was not there.
  [[nodiscard]] bool needs_bounds() const { return needs_bounds_; }

 private:
  using PartKind = op::PartForm::Kind;

  /// What a stored tensor is read through.
  struct Chain {
    std::uint32_t input = 0;
    std::vector<LiftedSlice> slices;
  };

  [[nodiscard]] op::Dim size_by(const SizeRule& rule) const {
    if (rule.is_constant()) return rule.number;
    return op::Dim(rule.factor) * symbols_[rule.symbol] + op::Dim(rule.number);
  }
  op::Shape next_shape(std::size_t rank) {
    op::Shape out;
    for (std::size_t i = 0; i < rank; ++i) out.push_back(size_by(rules_.rules()[next_size_++]));
    return out;
  }
  [[nodiscard]] const SizeRule& position_rule(std::size_t position) const {
    return rules_.rules()[key_.extents().size() + position];
  }

  Result<void> write(std::uint32_t step, std::uint32_t local) {
    const Node& node = needed_.node(step);
    builder_.at(span_of(node));
    const bool is_part = part_kind(node) != PartKind::none;
    // The operand of a slice is read only if what it takes is no input.
    Values inputs = is_part ? Values() : operands(step);
    if (is_part) note_operands(step);
    op::Attributes attributes = next_attributes(node);
    op::ValueTypes extra_types;
    for (std::size_t k = 1; node.extra != nullptr && k < node.extra->results.size(); ++k) {
      const op::ValueType& type = node.extra->results[k];
      extra_types.push_back({type.dtype, next_shape(type.rank())});
    }
    const op::ValueType type{node.dtype, next_shape(node.rank)};
    const Values values = TESSERA_TRY(is_part ? part(step, local, std::move(attributes), type)
                                              : value_of(step, inputs, std::move(attributes)));
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
      out_.results.push_back({local, k});
      results_.push_back(values[k]);
    }
  }

  // ---- operands

  /// Reads the sizes of inputs that are met for the first time, in the order of the key.
  void note_operands(std::uint32_t step) {
    const Node& node = needed_.node(step);
    std::size_t operand = 0;
    for (const std::uint32_t from : needed_.from(step))
      if (const Node* input = node.input(operand++); from == Needed::stored && input != nullptr)
        note_input(*input);
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
        out_.parameters.push_back({LiftedParameter::Kind::number, next_number_++});
        out.push_back(builder_.scalar_parameter(
            dtype, ir::is_float(dtype) ? bits.as_float() : static_cast<double>(bits.as_integer())));
      } else {
        out.push_back(input_value(*input));
      }
      ++operand;
    }
    return out;
  }

  struct Input {
    std::uint32_t index = 0;
    op::ValueType type;
    Value value;  ///< empty if nothing reads it yet
  };

  Input& note_input(const Node& input) {
    if (const auto known = inputs_.find(&input); known != inputs_.end()) return known->second;
    const auto index = static_cast<std::uint32_t>(inputs_.size());
    op::ValueType type{input.dtype, next_shape(input.rank)};
    if (!key_.inputs[index].storage->layout.is_contiguous()) next_size_ += input.rank;  // strides
    return inputs_[&input] = {index, std::move(type), {}};
  }

  Value input_value(const Node& node) {
    Input& input = note_input(node);
    if (!input.value) input.value = new_input({input.index, {}}, input.type);
    return input.value;
  }

  Value new_input(LiftedInput input, op::ValueType type) {
    out_.inputs.push_back(std::move(input));
    return builder_.parameter(cat("in", out_.inputs.size() - 1), std::move(type));
  }

  // ---- calls

  static PartKind part_kind(const Node& node) {
    const bool is_call = node.card != nullptr && !node.is(Node::is_result) && node.input_count > 0;
    if (!is_call || node.input(0) == nullptr) return PartKind::none;
    const PartKind kind = op::part_form(*node.card).kind;
    return kind == PartKind::update && node.input(1) == nullptr ? PartKind::none : kind;
  }

  op::Attributes next_attributes(const Node& node) {
    op::Attributes out = node.attributes();
    if (node.card != nullptr && op::part_form(*node.card).kind != PartKind::none) return out;
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
    return call(node.card->name, inputs, std::move(attributes));
  }

  Result<Values> call(std::string_view op, const Values& inputs, op::Attributes attributes) {
    Values out = builder_.call_all(op, inputs, std::move(attributes));
    TESSERA_TRY(builder_.status());
    return out;
  }

  // ---- slices, and updates of them

  Result<Values> part(std::uint32_t step, std::uint32_t local, op::Attributes attributes,
                      const op::ValueType& type) {
    const Node& node = needed_.node(step);
    const auto first = static_cast<std::uint32_t>(next_position_);
    next_position_ += attributes.get<op::Shape>("starts")->size();
    const bool moves = std::any_of(rules_.rules().begin() + index_of_rule(first),
                                   rules_.rules().begin() + index_of_rule(next_position_),
                                   [](const SizeRule& rule) { return rule.is_moving(); });
    if (part_kind(node) == PartKind::update) return update(step, std::move(attributes), first, moves);
    const std::optional<Chain> chain = chain_of(step, local, first);
    if (chain) chains_[step] = *chain;
    const op::Shape counts = counts_of(attributes, type.shape);
    if (chain && stored_slices_ == StoredSlices::all)
      for (std::size_t p = first; p < next_position_; ++p)
        out_.moved.push_back(static_cast<std::uint32_t>(p));
    else if (!moves) {
      op::Attributes fixed = op::slice_from(attributes, fixed_starts(first), counts);
      if (gives(step, fixed, type)) return call("slice", operands(step), std::move(fixed));
      if (!chain) demand_bounds(step, attributes, first, counts);
    }
    if (chain) return Values{new_input({chain->input, chain->slices}, type)};
    return call("slice_at", with_positions(operands(step), first), moving_attributes(attributes, counts));
  }

  Result<Values> update(std::uint32_t step, op::Attributes attributes, std::uint32_t first, bool moves) {
    if (moves)
      return call("update_slice_at", with_positions(operands(step), first),
                  moving_attributes(attributes, {}));
    attributes.set("starts", fixed_starts(first));
    return call("update_slice", operands(step), std::move(attributes));
  }

  [[nodiscard]] std::ptrdiff_t index_of_rule(std::size_t position) const {
    return static_cast<std::ptrdiff_t>(key_.extents().size() + position);
  }

  /// How a stored tensor is read by a slice, if by slices alone.
  std::optional<Chain> chain_of(std::uint32_t step, std::uint32_t local, std::uint32_t first) {
    const std::uint32_t from = needed_.from(step)[0];
    const auto known = chains_.find(from);
    if (from != Needed::stored && known == chains_.end()) return std::nullopt;
    Chain out =
        from == Needed::stored ? Chain{note_input(*needed_.node(step).input(0)).index, {}} : known->second;
    out.slices.push_back({local, first});
    return out;
  }

  /// The axes that the entries of a part are about; `rank` is that of the tensor.
  static std::vector<std::size_t> axes_of(const op::Attributes& part, std::size_t rank) {
    std::vector<std::size_t> out;
    const auto& axes = *part.get<std::vector<std::int64_t>>("axes");
    for (std::size_t i = 0; i < part.get<op::Shape>("starts")->size(); ++i)
      out.push_back(axes.empty() ? i
                                 : static_cast<std::size_t>(
                                       axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i]));
    return out;
  }

  static op::Shape counts_of(const op::Attributes& part, const op::Shape& shape) {
    op::Shape out;
    for (const std::size_t axis : axes_of(part, shape.size())) out.push_back(shape[axis]);
    return out;
  }

  [[nodiscard]] op::Shape fixed_starts(std::uint32_t first) const {
    op::Shape out;
    for (std::size_t p = first; p < next_position_; ++p) out.push_back(size_by(position_rule(p)));
    return out;
  }

  [[nodiscard]] const op::ValueType& operand_type(std::uint32_t step) {
    const std::uint32_t from = needed_.from(step)[0];
    return from == Needed::stored ? note_input(*needed_.node(step).input(0)).type
                                  : values_.at(from)[0].type();
  }

  /// Whether a slice by these attributes has this type for all symbols.
  bool gives(std::uint32_t step, const op::Attributes& attributes, const op::ValueType& type) {
    const op::ValueType& x = operand_type(step);
    const auto results = op::infer(*needed_.node(step).card, {&x, 1}, attributes);
    return results && (*results)[0] == type;
  }

  /// A slice never takes more than there is: programs that do are refused when they are recorded.
  void demand_bounds(std::uint32_t step, const op::Attributes& part, std::uint32_t first,
                     const op::Shape& counts) {
    const op::Shape& x = operand_type(step).shape;
    const auto axes = axes_of(part, x.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const op::Dim& size = x[axes[i]];
      const auto symbol = std::find(symbols_.begin(), symbols_.end(), counts[i]);
      if (symbol == symbols_.end() || !size.is_constant()) continue;
      const SizeRule& rule = position_rule(first + i);
      const std::int64_t start = rule.is_constant() && rule.number > 0 ? rule.number : 0;
      auto& bound = bounds_[static_cast<std::size_t>(symbol - symbols_.begin())];
      if (bound && *bound <= size.value() - start) continue;
      bound = size.value() - start;
      needs_bounds_ = true;
    }
  }

  Values with_positions(Values inputs, std::uint32_t first) {
    for (std::size_t p = first; p < next_position_; ++p) inputs.push_back(position_value(p));
    return inputs;
  }

  Value position_value(std::size_t position) {
    const SizeRule& rule = position_rule(position);
    if (!rule.is_moving()) return builder_.extent(size_by(rule));
    out_.parameters.push_back({LiftedParameter::Kind::position, static_cast<std::uint32_t>(position)});
    return builder_.scalar_parameter(Dtype::i64, static_cast<double>(key_.positions()[position]));
  }

  static op::Attributes moving_attributes(const op::Attributes& part, const op::Shape& counts) {
    op::Attributes out;
    if (!counts.empty()) out.set("sizes", counts);
    out.set("steps", *part.get<std::vector<std::int64_t>>("steps"));
    out.set("axes", *part.get<std::vector<std::int64_t>>("axes"));
    return out;
  }

  const Needed& needed_;
  const PlanKey& key_;
  const SizeRules& rules_;
  StoredSlices stored_slices_;
  Bounds& bounds_;
  bool needs_bounds_ = false;
  op::IrBuilder builder_;
  std::vector<op::Dim> symbols_;
  std::size_t next_size_ = 0, next_position_ = 0;
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint32_t, Values> values_;  ///< by step
  std::unordered_map<std::uint32_t, Chain> chains_;   ///< by step
  std::unordered_map<const Node*, Input> inputs_;
  Lifted out_;
  Values results_;
};

}  // namespace

Result<Lifted> tessera::engine::lift(const Needed& needed, std::span<const std::uint32_t> steps,
                                     const PlanKey& key, const SizeRules& rules, StoredSlices inputs) {
  Bounds bounds(rules.symbol_count());
  for (;;) {
    Lifting lifting(needed, key, rules, inputs, bounds);
    auto lifted = lifting.run(steps);
    if (!lifting.needs_bounds()) return lifted;
  }
}
