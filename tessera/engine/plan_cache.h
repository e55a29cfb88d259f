// The plans of an engine, bounded in number and bytes, and how often what has no plan yet was seen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/engine/plan_entry.h"

namespace tessera::engine {

struct PlanOptions {
  bool enabled = true;          ///< false: everything is streamed
  std::uint32_t threshold = 3;  ///< evaluations of one structure that make it hot
  std::size_t max_entries = 256;
  std::size_t max_bytes = std::size_t{1} << 30;  ///< keys, kept outputs, memory of steps and libraries
  std::size_t max_ops = 200'000;                 ///< of one plan; more is streamed
  std::uint64_t decay = 4096;  ///< evaluations without it after which the heat of a structure is halved
  bool wait = false;           ///< compile in the evaluation that made it hot, not beside it
  bool joins_sizes = true;  ///< plans of one structure with other sizes become one for all that are like them
  /// For tests that force collisions: the bits that are left of hashes.
  std::uint64_t hash_mask = ~std::uint64_t{0};
};

/// How hot a structure is that has no plan.
struct Heat {
  std::uint64_t hash = 0;
  std::uint64_t last_seen = 0;
  std::uint32_t count = 0;
  std::uint64_t streamed_ns = 0;  ///< the best time of an evaluation op by op
};

/// All members REQUIRE the engine's lock.
class PlanCache {
 public:
  explicit PlanCache(const PlanOptions& options) : options_(options), heat_(ways * sets) {}

  /// The plan for this key, if there is one whose size rules hold. `symbols` gets their values.
  [[nodiscard]] PlanEntryRef find(const PlanKey& key, std::vector<std::int64_t>& symbols);
  /// The plans with these words, whatever their sizes; newest last.
  [[nodiscard]] std::vector<PlanEntryRef> with_words(const PlanKey& key) const;
  void add(std::uint64_t hash, PlanEntryRef entry);
  void remove(const PlanEntryRef& entry);
  /// Drops what was not used for the longest time until the bounds hold. What was dropped is added to
  /// `dropped`, to be freed outside the lock.
  void shrink(std::vector<PlanEntryRef>& dropped);

  /// Takes what plans keep for their next launch.
  void take_idle(std::vector<std::unique_ptr<PlanInstance>>& out);

  /// Sees a structure once more. The reference is valid until the next call.
  Heat& heat(std::uint64_t hash);
  /// Keeps the sizes of what is about to become hot: what differs when it is may change in its plan. Of few
  /// structures, the latest.
  void remember(const PlanKey& key);
  /// What was kept of this structure; it is forgotten.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> take_remembered(const PlanKey& key);
  /// What has this hash was evaluated op by op in this time.
  void streamed(std::uint64_t hash, std::uint64_t nanoseconds);
  /// A number that grows with every evaluation.
  std::uint64_t tick() { return ++now_; }

  [[nodiscard]] std::size_t ready_count() const;
  /// The kept plan whose ops agree longest with `outline`.
  [[nodiscard]] PlanEntryRef nearest(const Outline& outline) const;
  [[nodiscard]] const PlanOptions& options() const { return options_; }

 private:
  static constexpr std::size_t ways = 4, sets = 1024;

  PlanOptions options_;
  std::unordered_multimap<std::uint64_t, PlanEntryRef> entries_;  ///< by the hash of the words
  std::vector<Heat> heat_;

  struct Remembered {
    std::uint64_t hash = 0;
    std::vector<std::int64_t> sizes;
  };
  static constexpr std::size_t max_remembered = 64;
  std::array<Remembered, max_remembered> remembered_;
  std::size_t next_remembered_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace tessera::engine
