// The units a detector knows: their letters, so that they are recognised again, and how often they occurred.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/stream/encoding.h"
#include "tessera/stream/lane.h"

namespace tessera::stream {

/// When a unit is hot, and how fast that passes.
struct Hotness {
  std::uint64_t threshold = 10;
  std::uint64_t decay = 0;  ///< instructions without an occurrence after which the heat is halved; 0 is never
};

/// The occurrences of one canonical form.
struct Tally {
  Hash128 signature;
  std::vector<std::uint32_t> skeleton;  // the canonical form itself: a signature only finds
  std::vector<std::int64_t> sizes;
  std::uint64_t length = 0;
  std::uint64_t count = 0;
  std::uint64_t heat = 0;           ///< the count, less what has decayed
  std::uint64_t last_position = 0;  ///< of the last occurrence
  std::uint64_t first_hot_at = 0;   ///< instructions read by then; 0 if it was never hot

  [[nodiscard]] EncodingView view() const { return {skeleton, sizes}; }
  [[nodiscard]] std::uint64_t heat_at(std::uint64_t position, const Hotness& hotness) const;
  [[nodiscard]] bool is_hot_at(std::uint64_t position, const Hotness& hotness) const {
    return heat_at(position, hotness) >= hotness.threshold;
  }
  /// Counts an occurrence that ended at `position`. Whether the unit was hot before it.
  bool count_one(std::uint64_t position, const Hotness& hotness);
  /// Takes back what count_one counted.
  void uncount_one(const Hotness& hotness);
};

/// A sequence of letters. Several can have one canonical form: those that differ in the order of independent
/// ops.
struct Word {
  std::vector<OpId> ops;
  std::vector<std::uint32_t> first_slot;   ///< by step, and one more for the end
  std::vector<std::uint32_t> links;        ///< by slot, 0 where they lead out
  std::vector<std::uint32_t> first_death;  ///< by step, and one more for the end
  std::vector<std::uint32_t> deaths;
  std::shared_ptr<Tally> tally;
  bool is_dropped = false;

  /// The window of a lane.
  Word(const Lane& lane, std::uint64_t start, std::uint64_t length);
  [[nodiscard]] std::uint64_t length() const { return ops.size(); }
  /// Whether step i of the lane is the letter of this word at i - start.
  [[nodiscard]] bool matches(const Lane& lane, std::uint64_t i, std::uint64_t start,
                             std::uint64_t start_slot) const;
  [[nodiscard]] bool matches_window(const Lane& lane, std::uint64_t start) const;
};

class UnitTable {
 public:
  /// Keeps at most `capacity` units with at most `letters` letters together.
  UnitTable(std::size_t capacity, std::size_t letters) : capacity_(capacity), letter_capacity_(letters) {}

  /// The words that begin with this op, longest first.
  [[nodiscard]] std::span<const std::shared_ptr<Word>> starting_with(OpId op);
  /// The unit of a canonical form, made if there is none. `word` is one of its words from now on.
  void add(const std::shared_ptr<Word>& word, const Encoding& encoding);
  /// Drops the units with the least heat until there is room for one of `letters` letters. How many were
  /// dropped.
  std::size_t make_room(std::size_t letters, std::uint64_t position, const Hotness& hotness);

  [[nodiscard]] const std::vector<std::shared_ptr<Tally>>& tallies() const { return tallies_; }
  [[nodiscard]] bool uses(OpId op) const { return op_uses_.contains(op); }
  [[nodiscard]] std::size_t letters() const { return letters_; }

 private:
  void drop_words(const Tally& tally);

  std::size_t capacity_;
  std::size_t letter_capacity_;
  std::size_t letters_ = 0;
  std::vector<std::shared_ptr<Tally>> tallies_;
  std::unordered_map<Hash128, std::vector<std::shared_ptr<Tally>>> by_signature_;
  FlatMap<std::vector<std::shared_ptr<Word>>> by_first_op_;
  std::unordered_map<OpId, std::size_t> op_uses_;
};

}  // namespace tessera::stream
