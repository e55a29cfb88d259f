#include "tessera/tensor/gradient_script.h"

#include <algorithm>
#include <utility>

#include "tessera/engine/recent_sets.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;
using op::Value;

namespace {

/// Per node, the first of them that is the same; three bits each.
std::uint32_t which_are_same(std::span<const engine::Operand> given) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::size_t first = 0;
    while (given[first].node != given[i].node) ++first;
    out |= static_cast<std::uint32_t>(first) << 3 * i;
  }
  return out;
}

struct Known {
  GradientQuestion question;
  GradientScript script;
};
thread_local engine::RecentSets<Known, 6> known_scripts;

}  // namespace

// ---- the question

std::optional<GradientQuestion> GradientQuestion::of(Node& call, Node* dy, std::uint32_t wanted) {
  const engine::Extra* const extra = call.extra;
  if (call.input_count > max_inputs || dy == nullptr || (extra != nullptr && !extra->results.empty()))
    return std::nullopt;
  GradientQuestion out;
  out.card_ = call.card;
  out.count_ = call.input_count;
  out.wanted_ = wanted;
  if (extra != nullptr) out.attributes_ = extra->attributes;
  std::size_t scalars = 0;
  for (std::size_t i = 0; i < call.input_count; ++i) {
    Node* const input = call.input(i);
    out.given_[i] = input != nullptr ? engine::Operand::of(input)
                                     : engine::Operand{nullptr, call.scalar_at(scalars++), true};
    if (input != nullptr && (out.types_[i] = engine::number_of_type(*input)) == engine::no_type_number)
      return std::nullopt;
  }
  out.given_[out.count_] = engine::Operand::of(&call);
  out.given_[out.count_ + 1] = engine::Operand::of(dy);
  out.same_ = which_are_same(out.given());
  return out;
}

bool GradientQuestion::is_like(const GradientQuestion& other) const {
  return card_ == other.card_ && attributes_ == other.attributes_ && types_ == other.types_ &&
         count_ == other.count_ && wanted_ == other.wanted_ && same_ == other.same_;
}

std::uint64_t GradientQuestion::hash() const {
  std::uint64_t out = engine::mixed(reinterpret_cast<std::uint64_t>(card_) >> 4, wanted_);
  out = engine::mixed(out, reinterpret_cast<std::uint64_t>(attributes_.get()) >> 4);
  for (const engine::TypeNumber type : types_) out = engine::mixed(out, type);
  return out;
}

// ---- the script

/// Reads what a rule recorded.
class GradientScript::Reader {
 public:
  Reader(const NodeBuilder& builder, std::span<const Value> given,
         std::span<const NodeBuilder::WrittenCall> calls)
      : builder_(builder), given_(given), calls_(calls) {}

  /// Of a value; none if it comes from elsewhere.
  [[nodiscard]] std::optional<Place> place(std::uint32_t value) const {
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (given_[i].id == value) return Place{Place::Kind::given, static_cast<std::uint32_t>(i), {}};
    for (std::size_t k = 0; k < calls_.size(); ++k)
      if (calls_[k].result == value) return Place{Place::Kind::step, static_cast<std::uint32_t>(k), {}};
    const engine::Operand number = builder_.operand(value);
    if (number.node != nullptr || !number.is_float) return std::nullopt;
    return Place{Place::Kind::number, 0, number};
  }

  /// None if the node is not what was written: operands were converted, or it is no simple call. None also
  /// if it was written because of what the given gradient is the gradient of, which no question says.
  [[nodiscard]] std::optional<Step> step(const NodeBuilder::WrittenCall& call) const {
    const Node* const node = builder_.operand(call.result).node;
    if (node == nullptr || node->input_count != call.inputs.size() || is_written_into_given(call.result))
      return std::nullopt;
    auto form = engine::form_of(*node);
    if (!form) return std::nullopt;
    Step out{*std::move(form), {}, node->input_count};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const auto from = place(call.inputs[i]);
      if (!from || builder_.operand(call.inputs[i]).node != node->input(i)) return std::nullopt;
      out.operands[i] = *from;
    }
    return out;
  }

  /// What the builder knows of a value as the gradient of a part; null: it is none.
  [[nodiscard]] const op::PartGradient* part_gradient(Value value) const {
    return builder_.find_part_gradient(value);
  }
  [[nodiscard]] bool is_node(Value value) const { return builder_.operand(value.id).node != nullptr; }
  [[nodiscard]] bool is_dy(Value value) const { return value.id == given_.back().id; }

 private:
  /// Whether a part was written over one of the given, which is the gradient of parts that lie elsewhere.
  [[nodiscard]] bool is_written_into_given(std::uint32_t value) const {
    const op::PartGradient* at = builder_.find_part_gradient({nullptr, value});
    for (; at != nullptr && at->into; at = builder_.find_part_gradient(at->into))
      if (const auto from = place(at->into.id); !from || from->kind == Place::Kind::given) return true;
    return false;
  }

  const NodeBuilder& builder_;
  std::span<const Value> given_;
  std::span<const NodeBuilder::WrittenCall> calls_;
};

std::optional<GradientScript> GradientScript::of(const GradientQuestion& question, const NodeBuilder& builder,
                                                 std::span<const Value> given,
                                                 std::span<const NodeBuilder::WrittenCall> calls,
                                                 std::span<const Value> gradients) {
  const Reader reader(builder, given, calls);
  GradientScript out;
  for (const NodeBuilder::WrittenCall& call : calls) {
    auto step = reader.step(call);
    if (!step) return std::nullopt;
    out.steps_.push_back(*std::move(step));
  }
  for (std::size_t i = 0; i < std::min(gradients.size(), question.input_count()); ++i) {
    if (!gradients[i] || !question.wants(i)) continue;
    if (!out.read_gradient(i, gradients[i], reader)) return std::nullopt;
  }
  out.drop_unwanted();
  return out;
}

/// Of a gradient that is passed on as it came the builder knows what it is of; of another one the script
/// must.
bool GradientScript::read_gradient(std::size_t i, Value gradient, const Reader& reader) {
  const auto place = reader.place(gradient.id);
  if (!place || !reader.is_node(gradient)) return false;
  gradients_[i] = *place;
  const op::PartGradient* const known = reader.part_gradient(gradient);
  if (known == nullptr || reader.is_dy(gradient)) return true;
  parts_[i] = known->part;
  return !known->into && reader.is_dy(known->update);
}

/// Steps that no wanted gradient needs.
void GradientScript::drop_unwanted() {
  std::vector<bool> needed(steps_.size());
  const auto need = [&](const Place& place) {
    if (place.kind == Place::Kind::step) needed[place.index] = true;
  };
  std::for_each(gradients_.begin(), gradients_.end(), need);
  for (std::size_t i = steps_.size(); i-- > 0;)
    if (needed[i]) std::for_each_n(steps_[i].operands.begin(), steps_[i].count, need);
  std::vector<std::uint32_t> moved_to(steps_.size());
  std::vector<Step> kept;
  const auto move = [&](Place& place) {
    if (place.kind == Place::Kind::step) place.index = moved_to[place.index];
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!needed[i]) continue;
    std::for_each_n(steps_[i].operands.begin(), steps_[i].count, move);
    moved_to[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(steps_[i]));
  }
  std::for_each(gradients_.begin(), gradients_.end(), move);
  steps_ = std::move(kept);
}

bool GradientScript::record(const GradientQuestion& question, engine::Caller caller, Gradients& out) const {
  const auto given = question.given();
  SmallVector<NodeRef, 16> made;
  const auto operand = [&](const Place& place) {
    if (place.kind == Place::Kind::given) return given[place.index];
    return place.kind == Place::Kind::step ? engine::Operand::of(made[place.index].get()) : place.number;
  };
  for (const Step& step : steps_) {
    std::array<engine::Operand, engine::CallForm::max_operands> operands;
    for (std::size_t i = 0; i < step.count; ++i) operands[i] = operand(step.operands[i]);
    Node* const node = engine::record_again(step.form, {operands.data(), step.count}, *question.dy(), caller);
    if (node == nullptr) return false;
    made.push_back(NodeRef::adopt(node));
  }
  for (std::size_t i = 0; i < gradients_.size(); ++i)
    if (gradients_[i].kind != Place::Kind::none) out[i] = NodeRef::share(operand(gradients_[i]).node);
  return true;
}

const GradientScript* tessera::detail::find_script(const GradientQuestion& question) {
  const Known* const known = known_scripts.find(
      question.hash(), [&](const Known& entry) { return entry.question.is_like(question); });
  return known == nullptr ? nullptr : &known->script;
}

void tessera::detail::add_script(GradientQuestion question, GradientScript script) {
  question.forget_values();
  const std::uint64_t hash = question.hash();
  known_scripts.add(hash, {std::move(question), std::move(script)});
}
