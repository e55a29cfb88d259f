// Where tiles come from. A library of patterns is one source, a grower of fusion regions another; the tiler
// does not know the difference.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cover/cover.h"
#include "tessera/pattern/graph.h"
#include "tessera/pattern/tile.h"

namespace tessera::pattern {

/// How much may be listed. Beyond a limit the listing stops and says that it is not complete.
struct ListLimits {
  std::size_t candidates = 2'000'000;
  std::size_t covered_nodes = 32'000'000;  ///< sum of the sizes of all candidates
};

/// The tiles that could be chosen, of all sources. Compact: there may be millions, and few are chosen.
class CandidateList {
 public:
  explicit CandidateList(ListLimits limits = {}) : limits_(limits), part_limits_(limits) {}

  /// Adds a candidate of the current source. `kind` and `payload` mean something to the source only. `nodes`
  /// is ascending without repeats. False if a limit is reached: then nothing was added.
  bool add(std::span<const NodeId> nodes, double cost, std::uint32_t kind,
           std::span<const std::uint32_t> payload);
  /// What follows is one of `parts` parts of the work that the current source still has to do: it gets an
  /// equal share of the time and of the room that are left, but at least a quarter, since most parts need
  /// little. So no part takes it all from the others.
  void begin_part(std::size_t parts);
  /// Whether the time for this part of the work is over. Looks at the clock.
  [[nodiscard]] bool out_of_time() const { return part_end_ && Clock::now() >= *part_end_; }
  /// Notes that the current source could have listed more, and why.
  void set_incomplete(std::string why);
  /// Notes that time ended the listing: what would have come is not known.
  void set_out_of_time(std::string why);
  /// Notes that `add` found no room: too many candidates, or more than there is time to choose from.
  void set_full(const std::string& who);
  [[nodiscard]] bool was_cut() const { return was_cut_; }

  [[nodiscard]] std::size_t size() const { return sets_.size(); }
  [[nodiscard]] std::span<const NodeId> nodes(std::size_t i) const { return sets_[i].nodes; }
  [[nodiscard]] double cost(std::size_t i) const { return sets_[i].cost; }
  [[nodiscard]] std::uint32_t source(std::size_t i) const;
  [[nodiscard]] std::uint32_t kind(std::size_t i) const { return origins_[i].kind; }
  [[nodiscard]] std::span<const std::uint32_t> payload(std::size_t i) const {
    const std::size_t end = i + 1 < origins_.size() ? origins_[i + 1].payload : payload_.size();
    return {payload_.data() + origins_[i].payload, end - origins_[i].payload};
  }
  /// What set_incomplete was told, in order; empty if every source listed everything.
  [[nodiscard]] const std::vector<std::string>& gaps() const { return gaps_; }

 private:
  friend class Tiler;
  using Clock = std::chrono::steady_clock;
  /// From here on candidates are the next source's, which has until `end`.
  void begin_source(std::optional<Clock::time_point> end);

  struct Origin {
    std::uint32_t kind = 0;
    std::size_t payload = 0;  ///< where it begins in payload_
  };

  ListLimits limits_;                          ///< of the whole list
  ListLimits part_limits_;                     ///< of the list at the end of what the current source does now
  std::optional<Clock::time_point> end_;       ///< of the current source
  std::optional<Clock::time_point> part_end_;  ///< of what it does now
  std::vector<cover::Candidate> sets_;
  std::vector<Origin> origins_;
  std::vector<std::uint32_t> payload_;
  std::vector<std::size_t> source_begin_;  ///< where the candidates of each source begin
  std::size_t covered_nodes_ = 0;
  std::vector<std::string> gaps_;
  bool was_cut_ = false;
  bool is_short_of_time_ = false;  ///< the room is what there is time to choose from
};

/// Thread-safe once built.
class TileSource {
 public:
  virtual ~TileSource() = default;
  /// A word for messages and traces.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Lists all tiles it offers for `graph`: convex, with everything that escapes declared. An error only if
  /// the source itself is broken (a cost that is no cost).
  [[nodiscard]] virtual Result<void> list(const Graph& graph, CandidateList& out) const = 0;
  /// What candidate i of the list, one of its own, is. Fills everything but `source` and `cost` into `out`,
  /// which is empty.
  virtual void describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const = 0;
  /// The name of candidate i alone.
  [[nodiscard]] virtual std::string name_of(const CandidateList& list, std::size_t i) const = 0;
};

}  // namespace tessera::pattern
