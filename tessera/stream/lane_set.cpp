#include "tessera/stream/lane_set.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::stream;

void LaneSet::meet(Lane* lane) {
  if (lane != nullptr && std::find(met_.begin(), met_.end(), lane) == met_.end()) met_.push_back(lane);
}

void LaneSet::read_inputs(const Instruction& instruction, std::uint64_t position) {
  for (const Input& input : instruction.inputs) {
    if (input.is_parameter) continue;
    Value& value = values_[input.value];
    if (value.version == 0) value.version = next_version_++;
    value.last_position = position;
    uses_.push_back({value.version, input.value});
    meet(lane_of(value));
  }
}

void LaneSet::unbind(const Value& value) {
  Lane* lane = lane_of(value);
  if (lane == nullptr) return;
  --lane->live_values;
  lost_.push_back({lane, value.version});
}

void LaneSet::bind(ValueId id, Lane& lane, std::uint64_t position) {
  Value& value = values_[id];
  unbind(value);
  value = {next_version_++, &lane, lane.serial, position, lane.end_slot() + uses_.size()};
  ++lane.live_values;
  uses_.push_back({value.version, id});
}

void LaneSet::release(ValueId id) {
  const Value* value = values_.find(id);
  if (value == nullptr) return;
  unbind(*value);
  values_.erase(id);
}

/// What was made in the lane and dies with the instruction that is about to be appended.
void LaneSet::collect_deaths(const Instruction& instruction, const Lane& lane) {
  deaths_.clear();
  const std::uint64_t end = lane.end_slot() + uses_.size();
  for (const ValueId id : instruction.frees) {
    const Value* value = values_.find(id);
    if (value != nullptr && lane_of(*value) == &lane)
      deaths_.push_back(static_cast<std::uint32_t>(end - value->made_in));
  }
  std::sort(deaths_.begin(), deaths_.end(), std::greater<>());
  deaths_.erase(std::unique(deaths_.begin(), deaths_.end()), deaths_.end());
}

Lane& LaneSet::open_lane() {
  if (spare_.empty()) spare_.emplace_back();
  lanes_.splice(lanes_.begin(), spare_, spare_.begin());
  Lane& lane = lanes_.front();
  lane.reset(next_serial_++, limits_.hash_mask);
  lane.place = lanes_.begin();
  return lane;
}

/// The longest lane takes in the others, in the order of the slots that brought them together: a value that
/// is carried on and on must not be moved again and again.
Lane& LaneSet::join() {
  if (met_.empty()) return open_lane();
  Lane* longest = met_.front();
  for (Lane* lane : met_)
    if (lane->size() > longest->size()) longest = lane;
  for (Lane* lane : met_)
    if (lane != longest) dissolve(*lane, *longest);
  lanes_.splice(lanes_.begin(), lanes_, longest->place);
  return *longest;
}

void LaneSet::dissolve(Lane& from, Lane& into) {
  observer_.dissolved(from);
  for (std::uint64_t i = from.begin(); i < from.end(); ++i) {
    std::uint64_t slot = into.end_slot();
    for (const Use& use : from.uses(i)) {
      const std::uint64_t made_in = slot++;  // the first mention of a value of the lane is its making
      Value* value = values_.find(use.id);
      if (value == nullptr || value->version != use.version || lane_of(*value) != &from) continue;
      value->lane = &into;
      value->lane_serial = into.serial;
      value->made_in = made_in;
    }
    append(into,
           {from.step(i).op, from.step(i).input_count, from.uses(i), from.deaths(i), from.step(i).position});
  }
  into.live_values += from.live_values;
  if (effects_ == &from && effects_serial_ == from.serial) {
    effects_ = &into;
    effects_serial_ = into.serial;
  }
  steps_ -= from.size();
  from.reset(0, limits_.hash_mask);
  spare_.splice(spare_.begin(), lanes_, from.place);
}

void LaneSet::append(Lane& lane, const Letter& letter) {
  observer_.before_append(lane);
  lane.append(letter);
  ++steps_;
  observer_.after_append(lane);
  if (lane.size() <= 4 * limits_.longest_period) return;
  steps_ -= lane.size();
  lane.keep_last(2 * limits_.longest_period + 1);
  steps_ += lane.size();
}

void LaneSet::end_lane(Lane& lane) {
  observer_.ended(lane);
  steps_ -= lane.size();
  lane.reset(0, limits_.hash_mask);
  spare_.splice(spare_.begin(), lanes_, lane.place);
}

/// Ends lanes that lost their last value.
void LaneSet::forget_lost() {
  for (const auto& [lane, version] : lost_) {
    if (lane->serial == 0) continue;
    lane->forget(version);
    const bool has_effects = lane == effects_ && lane->serial == effects_serial_;
    if (lane->live_values == 0 && !has_effects) end_lane(*lane);
  }
}

/// Ends the lanes that were idle longest if there are too many.
void LaneSet::end_idle(const Lane& current) {
  while (lanes_.size() > limits_.lanes || steps_ > 16 * limits_.longest_period) {
    if (&lanes_.back() == &current) return;
    end_lane(lanes_.back());
  }
}

void LaneSet::forget_old_values(std::uint64_t position) {
  if (values_.size() < sweep_at_) return;
  const std::uint64_t horizon = 4 * limits_.longest_period;
  std::vector<ValueId> old;
  values_.for_each([&](ValueId id, const Value& value) {
    if (value.last_position + horizon < position) old.push_back(id);
  });
  for (const ValueId id : old) release(id);
  sweep_at_ = std::max<std::size_t>(1024, 2 * values_.size());
}

Lane* LaneSet::record(const Instruction& instruction, const InternedOp& op, std::uint64_t position) {
  uses_.clear();
  met_.clear();
  lost_.clear();
  forget_old_values(position);
  read_inputs(instruction, position);
  const bool has_effect = op.effect != Effect::none;
  if (has_effect && effects_ != nullptr && effects_->serial == effects_serial_) meet(effects_);
  Lane& lane = join();
  if (has_effect) {
    effects_ = &lane;
    effects_serial_ = lane.serial;
  }
  const auto input_count = static_cast<std::uint32_t>(uses_.size());
  for (const Output& output : instruction.outputs) bind(output.value, lane, position);
  if (op.overwrites_input) bind(overwritten_input(instruction)->value, lane, position);
  deaths_.clear();
  if (!instruction.frees.empty()) collect_deaths(instruction, lane);
  append(lane, {op.id, input_count, uses_, deaths_, position});
  for (const ValueId id : instruction.frees) release(id);
  if (lane.live_values == 0) lost_.push_back({&lane, 0});  // it made nothing that could be read
  forget_lost();
  end_idle(lane);
  return lane.serial == 0 ? nullptr : &lane;
}

void LaneSet::end_all() {
  std::vector<Lane*> open;
  for (Lane& lane : lanes_) open.push_back(&lane);
  std::sort(open.begin(), open.end(),
            [](const Lane* a, const Lane* b) { return a->first_position < b->first_position; });
  for (Lane* lane : open) end_lane(*lane);
  values_.clear();
  effects_ = nullptr;
}
