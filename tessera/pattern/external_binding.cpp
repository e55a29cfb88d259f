#include "tessera/pattern/external_binding.h"

#include <algorithm>

using namespace tessera::pattern;

using Kind = PatternInput::Kind;

ExternalBinding::ExternalBinding(const Graph& graph, const Pattern& pattern, const Variant& variant,
                                 const MatchPlan& plan, const std::vector<std::uint32_t>& owner)
    : graph_(graph),
      pattern_(pattern),
      variant_(variant),
      plan_(plan),
      owner_(owner),
      values_(pattern.parts().externals.size(), none),
      trails_(variant.nodes.size()) {}

bool ExternalBinding::admits(const PatternExternal& external, ValueId value) const {
  if (!external.dtypes.empty()) {
    const auto dtype = graph_.type(value).dtype;
    if (!dtype || std::ranges::find(external.dtypes, *dtype) == external.dtypes.end()) return false;
  }
  if (!external.is_constant) return true;
  if (graph_.producer(value) != none || graph_.external(value).kind != External::Kind::constant) return false;
  const auto& constant = graph_.external(value).constant;
  return constant ? external.value.admits(*constant) : external.value == ValueCondition{};
}

bool ExternalBinding::is_outside(ValueId value) const {
  return graph_.producer(value) == none || owner_[graph_.producer(value)] == 0;
}

bool ExternalBinding::set(std::uint32_t external, ValueId value, std::vector<std::uint32_t>& trail) {
  if (values_[external] != none) return values_[external] == value;
  if (!admits(pattern_.parts().externals[external], value)) return false;
  values_[external] = value;
  trail.push_back(external);
  return true;
}

bool ExternalBinding::bind_slots(std::uint32_t i, NodeId node) {
  const auto& wanted = variant_.nodes[i].inputs;
  for (std::size_t slot = 0; slot < wanted.size(); ++slot)
    if (wanted[slot].kind == Kind::external &&
        !set(wanted[slot].index, graph_.inputs(node)[slot], trails_[i]))
      return false;
  return true;
}

void ExternalBinding::release(std::uint32_t i) {
  for (std::uint32_t external : trails_[i]) values_[external] = none;
  trails_[i].clear();
}

/// Finds what is left to hand out. False if a slot that counts holds a value from inside the match, or a node
/// has inputs that nothing in the pattern can take.
bool ExternalBinding::prepare(std::span<const NodeId> images) {
  slots_.clear();
  loose_.clear();
  for (std::uint32_t i = 0; i < images.size(); ++i) {
    if (variant_.nodes[i].repeat.most != 1) continue;  // what a chain takes is not named
    if (graph_.is_commutative(graph_.op(images[i]))) {
      if (!prepare_commutative(i, images[i])) return false;
      continue;
    }
    const auto& wanted = variant_.nodes[i].inputs;
    for (std::size_t slot = 0; slot < wanted.size(); ++slot)
      if (wanted[slot].kind != Kind::node && !is_outside(graph_.inputs(images[i])[slot])) return false;
  }
  is_taken_.assign(loose_.size(), false);
  choices_.assign(slots_.size(), 0);
  slot_trails_.resize(std::max(slot_trails_.size(), slots_.size()));
  return true;
}

bool ExternalBinding::prepare_commutative(std::uint32_t i, NodeId image) {
  const PatternNode& wanted = variant_.nodes[i];
  const std::size_t begin = loose_.size();
  const std::size_t first_slot = slots_.size();
  const auto is_outer = [](const PatternInput& input) { return input.kind != Kind::node; };
  const auto asked = static_cast<std::size_t>(std::ranges::count_if(wanted.inputs, is_outer));
  // What takes anything takes what the names leave: there is nothing to choose.
  for (const ExternalSlot& slot : plan_.nodes[i].externals) slots_.push_back({slot, begin, begin});
  for (ValueId value : graph_.inputs(image))
    if (is_outside(value)) loose_.push_back(value);
  std::sort(loose_.begin() + static_cast<std::ptrdiff_t>(begin), loose_.end());
  // The edges of the pattern were found among the inputs; if the inputs are complete, those from inside are
  // exactly the ones the pattern draws, so that the others are as many as the slots.
  if (wanted.lists_inputs && loose_.size() - begin != asked) return false;
  if (loose_.size() - begin < asked) return false;
  for (std::size_t slot = first_slot; slot < slots_.size(); ++slot) slots_[slot].end = loose_.size();
  return true;
}

void ExternalBinding::for_each_binding(std::span<const NodeId> images, const Visitor& visit,
                                       const StopQuestion& should_stop) {
  if (!prepare(images)) return;
  if (!slots_.empty())
    hand_out(visit, should_stop);
  else if (keeps_order())
    visit(values_);
}

void ExternalBinding::hand_out(const Visitor& visit, const StopQuestion& should_stop) {
  std::size_t depth = 0;
  bool goes_on = true;
  choices_[0] = first_choice(0);
  while (goes_on) {
    if (depth == slots_.size()) {
      goes_on = visit(values_);
    } else if (should_stop()) {
      goes_on = false;
    } else if (advance(depth)) {
      if (++depth < slots_.size()) choices_[depth] = first_choice(depth);
      continue;
    }
    if (depth == 0) break;
    retreat(--depth);
  }
  while (depth > 0) retreat(--depth);
}

/// Slots that nothing tells apart take values in the order in which they are listed: choices_ of the slot
/// before stands one past what it took.
std::size_t ExternalBinding::first_choice(std::size_t depth) const {
  return slots_[depth].plan.follows ? choices_[depth - 1] : slots_[depth].begin;
}

/// Whether the slots that follow this one find values after `at`.
bool ExternalBinding::leaves_enough(const Slot& slot, std::size_t at) const {
  if (slot.plan.followed_by == 0) return true;
  const PatternExternal& external = pattern_.parts().externals[slot.plan.external];
  std::uint32_t count = 0;
  for (std::size_t other = at + 1; other < slot.end && count < slot.plan.followed_by; ++other)
    if (!is_taken_[other] && admits(external, loose_[other])) ++count;
  return count == slot.plan.followed_by;
}

/// Takes the next loose value for a slot; choices_ stands one past it. False if there is none left.
bool ExternalBinding::advance(std::size_t depth) {
  const Slot& slot = slots_[depth];
  std::size_t& choice = choices_[depth];
  while (choice < slot.end) {
    const std::size_t at = choice++;
    if (is_taken_[at]) continue;
    bool is_repeat = false;  // an equal value that is free was tried before
    for (std::size_t other = at; other > slot.begin && loose_[other - 1] == loose_[at] && !is_repeat; --other)
      is_repeat = !is_taken_[other - 1];
    if (is_repeat) continue;
    if (!leaves_enough(slot, at)) return false;
    is_taken_[at] = true;
    if (set(slot.plan.external, loose_[at], slot_trails_[depth]) && keeps_order()) return true;
    retreat(depth);
  }
  return false;
}

void ExternalBinding::retreat(std::size_t depth) {
  is_taken_[choices_[depth] - 1] = false;
  for (std::uint32_t external : slot_trails_[depth]) values_[external] = none;
  slot_trails_[depth].clear();
}

bool ExternalBinding::keeps_order() const {
  return std::ranges::all_of(plan_.external_rules, [&](const OrderRule& rule) {
    const ValueId smaller = values_[rule.smaller];
    const ValueId larger = values_[rule.larger];
    return smaller == none || larger == none || smaller <= larger;
  });
}
