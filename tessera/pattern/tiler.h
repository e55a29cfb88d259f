// The tiler: chooses tiles that cover a graph at the least cost, in an order in which they can run, and
// proves it.
//
//   const Tiling tiling = TESSERA_TRY(tile(graph, target));
//   for (const Tile& tile : tiling.tiles) …
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cover/cover.h"
#include "tessera/pattern/target.h"

namespace tessera::pattern {

enum class Objective : std::uint8_t {
  cost,      ///< the least sum of the costs of tiles and uncovered nodes
  coverage,  ///< the most nodes covered, then the fewest tiles; costs do not count
};

struct TileOptions {
  Objective objective = Objective::cost;
  /// Work for all of it, in units of about a nanosecond (cover/effort.h). What is listed and found by then
  /// counts.
  std::optional<std::uint64_t> work = {};
  /// The same as wall-clock time: then the answer depends on the machine.
  std::optional<std::chrono::milliseconds> budget = {};
  /// The cost of every uncovered node, in place of the target's. For the objective `cost`.
  std::optional<double> uncovered_cost = {};
  /// Limits of the solver; its work and budget are what listing leaves.
  cover::Options solver = {};
  /// Keep the list of candidates, for traces.
  bool keep_candidates = false;
};

/// A tile or an uncovered node, in the order in which they run.
struct TilingStep {
  enum class Kind : std::uint8_t { tile, node };
  Kind kind = Kind::tile;
  std::uint32_t index = 0;  ///< into Tiling::tiles, or a node
};

struct Tiling {
  std::vector<Tile> tiles;        ///< in an order in which they can run
  std::vector<NodeId> uncovered;  ///< ascending
  std::vector<TilingStep> order;  ///< of all of them; tiles in the order of `tiles`
  double cost = 0;
  double bound = 0;      ///< no valid tiling by the listed candidates costs less
  bool optimal = false;  ///< cost == bound
  double gap = 0;        ///< how much of the cost may be avoidable, at most 1
  std::size_t candidates = 0;
  /// What was not listed, and why; empty if every source listed all it has. If a budget ended a
  /// listing, `optimal` is false and `bound` is 0: nothing is known of the tiles that were not listed.
  std::vector<std::string> gaps;
  std::vector<cover::Subproblem> subproblems;  ///< in terms of nodes
  double uncovered_cost = 0;                   ///< the dearest that an uncovered node could have cost
  double list_ms = 0;                          ///< matching and growing
  double solve_ms = 0;
  std::optional<CandidateList> list;  ///< if TileOptions::keep_candidates

  [[nodiscard]] std::size_t covered_nodes(const Graph& graph) const {
    return graph.node_count() - uncovered.size();
  }
};

/// The best tiling of `graph` by the tiles that `target` offers. The same arguments give the same tiling on
/// every machine unless `budget` ends the work early. Thread-safe: no state outlives the call.
[[nodiscard]] Result<Tiling> tile(const Graph& graph, const Target& target, const TileOptions& options = {});

}  // namespace tessera::pattern
