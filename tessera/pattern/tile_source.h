// Where tiles come from. A library of patterns is one source, a grower of fusion regions another; the tiler
// does not know the difference.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cover/cover.h"
#include "tessera/cover/effort.h"
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
  /// equal share of the effort and of the room that are left, but at least a quarter, since most parts need
  /// little. So no part takes it all from the others.
  void begin_part(std::size_t parts);
  /// How many candidates the current part can still add.
  [[nodiscard]] std::size_t room() const { return part_limits_.candidates - sets_.size(); }
  /// What the current part of the work may take; sources count here what they do, and stop when it is over.
  [[nodiscard]] cover::Effort& effort() { return effort_; }
  /// Notes that the current source could have listed more, and why.
  void set_incomplete(std::string why);
  /// Notes that the effort was over before `who` had listed all: what would have come is not known.
  void set_cut(const std::string& who);
  /// Notes that `add` found no room: too many candidates, or more than could be chosen from.
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
  /// From here on candidates are the next source's, one of so many that are left to list.
  void begin_source(std::uint32_t left);

  struct Origin {
    std::uint32_t kind = 0;
    std::size_t payload = 0;  ///< where it begins in payload_
  };

  ListLimits limits_;              ///< of the whole list
  ListLimits part_limits_;         ///< of the list at the end of what the current source does now
  cover::Effort effort_;           ///< until the end of what the current source does now
  cover::Effort::End end_;         ///< of all listing
  cover::Effort::End source_end_;  ///< of the current source's
  std::vector<cover::Candidate> sets_;
  std::vector<Origin> origins_;
  std::vector<std::uint32_t> payload_;
  std::vector<std::size_t> source_begin_;  ///< where the candidates of each source begin
  std::size_t covered_nodes_ = 0;
  std::vector<std::string> gaps_;
  bool was_cut_ = false;
  bool is_short_of_effort_ = false;  ///< the room is what can be chosen from
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
