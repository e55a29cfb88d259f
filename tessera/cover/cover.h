// The exact weighted cover: choose disjoint candidates, pay for the nodes left over, keep the rest
// schedulable.
//
// A Problem is a DAG of numbered nodes, sets of nodes with a cost each (the candidates), and the price of
// leaving a node uncovered. A tiling takes disjoint candidates; it is valid if the graph in which each chosen
// candidate is one vertex has no cycle. `solve` finds a valid tiling of least total cost and proves it, or
// says how far from the least it may be when a limit cut it short.
//
//   Problem problem{.node_count = 3, .edges = {{0, 1}, {1, 2}}};
//   problem.candidates = {{.nodes = {0, 1}, .cost = 1}, {.nodes = {2}, .cost = 1}};
//   problem.uncovered_cost = {4, 4, 4};
//   const Solution best = TESSERA_TRY(solve(problem));
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/small_vector.h"

namespace tessera::cover {

/// The consumer can only run after the producer.
struct Edge {
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;

  bool operator==(const Edge&) const = default;
};

/// A set of nodes that can be one tile, and what the tile costs. `nodes` is ascending without repeats.
/// A candidate that is not convex (a path leaves it and comes back) is legal and never chosen.
struct Candidate {
  SmallVector<std::uint32_t, 8> nodes = {};
  double cost = 1;
};

/// Costs are finite and not negative, and so is their sum. `uncovered_cost` has one entry per node. An edge
/// may be listed twice.
struct Problem {
  std::uint32_t node_count = 0;
  std::vector<Edge> edges = {};
  std::vector<Candidate> candidates = {};
  std::vector<double> uncovered_cost = {};
};

/// Limits on the work. Only `budget` makes the answer depend on the machine.
struct Options {
  /// Work after which the best tiling found so far is returned, in units of about a nanosecond (effort.h).
  /// Reading the problem, which takes linear time, is not cut short.
  std::optional<std::uint64_t> work = {};
  /// The same as wall-clock time.
  std::optional<std::chrono::milliseconds> budget = {};
  /// States that a layer of the frontier may hold before a subproblem goes to the bounded search, an eighth
  /// of it where cycles must be watched; 0 sends all.
  std::uint32_t frontier_limit = 8192;
  /// States the bounded search may expand in one subproblem before it settles for a gap.
  std::uint64_t state_limit = 2'000'000;
};

/// How a subproblem was solved.
enum class Method : std::uint8_t {
  frontier,  ///< dynamic programming over the frontier of a topological order
  search,    ///< branch and bound over partial schedules
  greedy,    ///< a greedy tiling and a simple bound: they met, or a limit was reached
};

/// "frontier", "search" or "greedy".
std::string_view to_string(Method method);

/// One independent part of the problem. Nodes that no useful candidate joins to another are in none.
struct Subproblem {
  SmallVector<std::uint32_t, 8> nodes;  ///< ascending in the order the solver used
  std::uint32_t candidates = 0;         ///< those with two nodes or more that were worth considering
  std::uint32_t same_as = 0;  ///< index of the subproblem that was solved in its place; its own if none
  Method method = Method::frontier;
  std::uint64_t states = 0;  ///< visited; 0 if reused
  double cost = 0;
  double bound = 0;
  bool optimal = false;
};

/// One vertex of the contracted graph: a chosen tile or an uncovered node.
struct Step {
  enum class Kind : std::uint8_t { tile, node };
  Kind kind = Kind::node;
  std::uint32_t index = 0;  ///< into Problem::candidates, or a node

  bool operator==(const Step&) const = default;
};

struct Solution {
  std::vector<std::uint32_t> chosen;     ///< indices into Problem::candidates, ascending
  std::vector<std::uint32_t> uncovered;  ///< nodes, ascending
  std::vector<Step> order;               ///< an order in which all of the above can run
  double cost = 0;
  double bound = 0;  ///< no valid tiling costs less
  bool optimal = false;
  std::vector<Subproblem> subproblems;

  /// How much of the cost may be avoidable: 0 when optimal, at most 1.
  [[nodiscard]] double gap() const { return cost > bound ? (cost - bound) / cost : 0; }
  /// Subproblems that were solved, not reused.
  [[nodiscard]] std::size_t distinct_subproblems() const;
  /// States visited in all of them.
  [[nodiscard]] std::uint64_t states() const;
};

/// The least-cost valid tiling. The same problem gives the same solution on every machine unless `budget`
/// ends the work early. Costs are compared in fixed point with 50 bits for the total: whole numbers and other
/// short binary fractions are exact, other costs are rounded once, when read. Where a single-node candidate
/// costs as much as leaving the node uncovered, the node is covered. Thread-safe: no state outlives the call.
[[nodiscard]] Result<Solution> solve(const Problem& problem, const Options& options = {});

}  // namespace tessera::cover
