// One of the streams that are interleaved in a stream: the instructions of a component in an order that the
// other streams do not disturb, as a word whose letters can be compared.
//
// A letter is an op and, for each slot, a link: how many slots back the same value was last mentioned, read
// or made. Seen from a window of the word, a link that leads out of it is an input of the window. So two
// windows have the same letters exactly if ops, slots and the pattern of equal values are the same. A letter
// also says which values of the lane die with it, by how many slots back they were made; what was made before
// a window begins is no matter of the window.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "tessera/stream/flat_map.h"
#include "tessera/stream/op_table.h"

namespace tessera::stream {

struct Word;
struct Tally;

/// A value in one of its versions. Ids are used again, versions are not.
struct Use {
  std::uint64_t version = 0;
  ValueId id = 0;
};

/// An instruction on its way into a lane: inputs first, then what it makes.
struct Letter {
  OpId op = 0;
  std::uint32_t input_count = 0;
  std::span<const Use> uses;
  /// Of what dies: slots from where it was made to the end of this step, descending.
  std::span<const std::uint32_t> deaths;
  std::uint64_t position = 0;  ///< in the whole stream
};

/// Steps and slots have indices that stay when old ones are dropped.
class Lane {
 public:
  struct Step {
    OpId op = 0;
    std::uint32_t input_count = 0;
    std::uint64_t first_slot = 0;
    std::uint64_t first_death = 0;
    std::uint64_t position = 0;
    std::uint64_t hash = 0;           ///< of all ops up to this one, a polynomial in gram_base
    std::uint32_t previous_same = 0;  ///< steps back to the same op, 0 if there is none
  };
  /// A unit whose first steps match the lane from `start` on.
  struct Attempt {
    std::shared_ptr<Word> word;
    std::uint64_t start = 0;
    std::uint64_t start_slot = 0;
  };
  /// An occurrence that was counted.
  struct Credit {
    std::shared_ptr<Tally> tally;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    bool is_hot = false;
  };
  /// The steps from `since` on have the ops of those `period` before. Links agree in windows that begin
  /// behind slot `bound`.
  struct Period {
    std::uint64_t period = 0;
    std::uint64_t since = 0;
    std::uint64_t bound = 0;  ///< one past the slot; 0 for none
    bool is_settled = false;  ///< the square was looked at
  };

  /// An empty lane. `hash_mask` is for tests that force collisions.
  void reset(std::uint64_t serial, std::uint64_t hash_mask);
  void append(const Letter& letter);
  /// A value that will not be mentioned again.
  void forget(std::uint64_t version) { mentions_.erase(version); }
  /// Drops all but the last `count` steps.
  void keep_last(std::uint64_t count);

  [[nodiscard]] std::uint64_t begin() const { return base_; }
  [[nodiscard]] std::uint64_t end() const { return base_ + steps_.size(); }
  [[nodiscard]] std::uint64_t size() const { return steps_.size(); }
  [[nodiscard]] const Step& step(std::uint64_t i) const { return steps_[i - base_]; }
  [[nodiscard]] std::uint64_t end_slot() const { return slot_base_ + links_.size(); }
  [[nodiscard]] std::uint64_t end_slot(std::uint64_t i) const {
    return i + 1 < end() ? step(i + 1).first_slot : end_slot();
  }
  /// Slots back to the last mention of the value in a slot, 0 if there is none.
  [[nodiscard]] std::uint32_t link(std::uint64_t slot) const { return links_[slot - slot_base_]; }
  /// Whether anything was said about what dies.
  [[nodiscard]] bool has_deaths() const { return has_deaths_; }
  /// What dies with a step, as in Letter.
  [[nodiscard]] std::span<const std::uint32_t> deaths(std::uint64_t i) const {
    const std::uint64_t end = i + 1 < this->end() ? step(i + 1).first_death : death_base_ + deaths_.size();
    return {deaths_.data() + (step(i).first_death - death_base_), end - step(i).first_death};
  }
  /// Those of what a window made that begins with slot `start`.
  [[nodiscard]] std::span<const std::uint32_t> deaths_within(std::uint64_t i, std::uint64_t start) const {
    std::span<const std::uint32_t> out = deaths(i);
    while (!out.empty() && out.front() > end_slot(i) - start) out = out.subspan(1);
    return out;
  }
  /// The value in a slot.
  [[nodiscard]] const Use& use(std::uint64_t slot) const { return uses_[slot - slot_base_]; }
  /// The values in the slots of a step.
  [[nodiscard]] std::span<const Use> uses(std::uint64_t i) const {
    return {uses_.data() + (step(i).first_slot - slot_base_), end_slot(i) - step(i).first_slot};
  }
  /// The link of a slot as a window sees it that begins with slot `start`.
  [[nodiscard]] std::uint32_t link_within(std::uint64_t slot, std::uint64_t start) const {
    const std::uint32_t back = link(slot);
    return back > slot - start ? 0 : back;
  }
  /// Whether step i in a window that begins at `i_start` and step j in one that begins at `j_start` are the
  /// same letter. REQUIRES the same distance to the start and the same ops in between.
  [[nodiscard]] bool same_letter(std::uint64_t i, std::uint64_t i_start, std::uint64_t j,
                                 std::uint64_t j_start) const;
  [[nodiscard]] bool same_window(std::uint64_t i, std::uint64_t j, std::uint64_t length) const;
  /// A hash of the `length` ops up to step i. `power` is gram_base to the power of length. REQUIRES that
  /// nothing was dropped before them or that there is a step before them.
  [[nodiscard]] std::uint64_t gram(std::uint64_t i, std::uint64_t length, std::uint64_t power) const;
  static constexpr std::uint64_t gram_base = 0x9e3779b97f4a7c15ULL;
  /// Whether the window is a shorter one several times over.
  [[nodiscard]] bool is_power(std::uint64_t start, std::uint64_t length) const;
  /// The last position of the steps in a window.
  [[nodiscard]] std::uint64_t last_position(std::uint64_t start, std::uint64_t end) const;

  // What the detector keeps with a lane.
  std::uint64_t serial = 0;
  std::uint64_t first_position = 0;  ///< of the first instruction that came in
  std::uint64_t last_position_seen = 0;
  std::uint64_t word_hash = 0;  ///< of all letters since the lane began
  std::uint64_t live_values = 0;
  bool is_registered = false;
  bool is_loose = false;
  std::list<Lane>::iterator place;  ///< of this lane, in the list of its owner
  std::vector<Attempt> attempts;
  std::vector<Credit> credits;
  std::vector<Period> periods;
  FlatMap<std::uint64_t> grams;  ///< the last step at which a sampled sequence of ops ended

 private:
  void release();

  std::uint64_t hash_mask_ = ~std::uint64_t{0};
  std::uint64_t base_ = 0;
  std::uint64_t slot_base_ = 0;
  std::uint64_t death_base_ = 0;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> links_;  // by slot: what is compared most stands close together
  std::vector<Use> uses_;             // by slot
  std::vector<std::uint32_t> deaths_;
  bool has_deaths_ = false;
  FlatMap<std::uint64_t> mentions_;   // by version: the slot after the last mention
  FlatMap<std::uint64_t> last_same_;  // by op: the step after the last one
};

}  // namespace tessera::stream
