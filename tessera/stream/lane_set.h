// Takes a stream apart into lanes, one per component: an instruction goes where the values it reads were
// made, and where several lanes meet they become one. Instructions with an effect stay in one lane, in order.
//
// Bounded: the lane that was idle longest ends when there are too many, and a value that was not touched for
// long counts as one from outside.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "tessera/stream/lane.h"

namespace tessera::stream {

struct LaneLimits {
  std::size_t lanes = 1024;
  std::uint64_t longest_period = 1 << 14;
  std::uint64_t hash_mask = ~std::uint64_t{0};
};

/// Is told what happens to lanes.
class LaneObserver {
 public:
  virtual ~LaneObserver() = default;
  virtual void before_append(Lane& lane) = 0;
  virtual void after_append(Lane& lane) = 0;
  /// Nothing more can come. The lane is empty afterwards.
  virtual void ended(Lane& lane) = 0;
  /// Its steps are about to be appended to another lane.
  virtual void dissolved(Lane& lane) = 0;
};

class LaneSet {
 public:
  LaneSet(const LaneLimits& limits, LaneObserver& observer) : limits_(limits), observer_(observer) {}

  /// The lane that took the instruction, or null if it ended with it.
  Lane* record(const Instruction& instruction, const InternedOp& op, std::uint64_t position);
  /// Ends all lanes, in the order they began, and forgets all values.
  void end_all();

  template <class F>
  void for_each_lane(F&& f) {
    for (Lane& lane : lanes_) f(lane);
  }
  [[nodiscard]] std::size_t size() const { return lanes_.size(); }
  [[nodiscard]] std::size_t value_count() const { return values_.size(); }

 private:
  struct Value {
    std::uint64_t version = 0;
    Lane* lane = nullptr;
    std::uint64_t lane_serial = 0;
    std::uint64_t last_position = 0;
    std::uint64_t made_in = 0;  ///< slot of the lane
  };

  [[nodiscard]] static Lane* lane_of(const Value& value) {
    return value.lane != nullptr && value.lane->serial == value.lane_serial ? value.lane : nullptr;
  }
  void read_inputs(const Instruction& instruction, std::uint64_t position);
  void meet(Lane* lane);
  void bind(ValueId id, Lane& lane, std::uint64_t position);
  void unbind(const Value& value);
  void release(ValueId id);
  void collect_deaths(const Instruction& instruction, const Lane& lane);
  [[nodiscard]] Lane& open_lane();
  [[nodiscard]] Lane& join();
  void dissolve(Lane& from, Lane& into);
  void append(Lane& lane, const Letter& letter);
  void end_lane(Lane& lane);
  void forget_lost();
  void end_idle(const Lane& current);
  void forget_old_values(std::uint64_t position);

  LaneLimits limits_;
  LaneObserver& observer_;
  std::list<Lane> lanes_;  // last used first
  std::list<Lane> spare_;
  std::uint64_t next_serial_ = 1;
  std::uint64_t next_version_ = 1;
  std::uint64_t steps_ = 0;  // in all lanes
  std::size_t sweep_at_ = 1024;
  Lane* effects_ = nullptr;
  std::uint64_t effects_serial_ = 0;
  FlatMap<Value> values_;
  // Of the instruction at hand.
  std::vector<Use> uses_;
  std::vector<std::uint32_t> deaths_;
  std::vector<Lane*> met_;
  struct Lost {
    Lane* lane;
    std::uint64_t version;
  };
  std::vector<Lost> lost_;  // values that are gone once the instruction is done
};

}  // namespace tessera::stream
