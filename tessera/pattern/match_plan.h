// How to look for a variant of a pattern in a graph: in which order its nodes are bound, and what each must
// satisfy.
//
// The search begins at the node whose ops are rarest in the graph. Every further node has a neighbour that is
// bound already, and of those the one with the fewest possibilities comes next: a producer in a slot that
// counts has one, a producer in any slot as many as the op has inputs, a consumer as many as the value has.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/pattern/graph.h"
#include "tessera/pattern/pattern.h"
#include "tessera/pattern/symmetry.h"

namespace tessera::pattern {

/// Binds one pattern node.
struct MatchStep {
  enum class From : std::uint8_t {
    all,       ///< any node of the graph with one of its ops
    consumer,  ///< `neighbour` takes it, in `slot`
    producer,  ///< it takes result `result` of `neighbour`
  };
  std::uint32_t node = 0;
  From from = From::all;
  std::uint32_t neighbour = 0;
  std::uint32_t slot = 0;
  std::uint32_t result = 0;
  /// How many nodes that hang on the same neighbour and come later must get a larger, a smaller number.
  std::uint32_t larger_waiting = 0;
  std::uint32_t smaller_waiting = 0;
};

/// A place where a pattern node is taken as an input.
struct PatternUse {
  std::uint32_t node = 0;
  std::uint32_t slot = 0;
  std::uint32_t result = 0;
};

/// A slot of a pattern node that takes a named external.
struct ExternalSlot {
  std::uint32_t external = 0;
  bool follows = false;           ///< its value comes after that of the slot before it in the list
  std::uint32_t followed_by = 0;  ///< how many slots come after it in this way, one after another
};

/// What the search asks of a pattern node again and again.
struct NodePlan {
  std::vector<OpId> ops;                ///< those it may have, if it names ops
  std::vector<bool> has_traits;         ///< by op, if it names traits
  std::vector<PatternUse> uses;         ///< of its results
  std::vector<std::uint32_t> declared;  ///< results that are outputs
  bool declares_all = false;
  /// By result: how many nodes can take it inside a match; the last entry is for all further results.
  std::vector<std::uint32_t> consumer_limit;
  std::vector<OrderRule> rules;  ///< that mention it
  /// Its named externals, those that nothing tells apart one after another.
  std::vector<ExternalSlot> externals;
  bool is_chain = false;

  [[nodiscard]] bool admits(OpId op) const;
  [[nodiscard]] bool declares(std::uint32_t result) const;
};

struct MatchPlan {
  std::vector<MatchStep> steps;
  std::vector<NodePlan> nodes;  ///< by node of the variant
  std::vector<NodeId> roots;    ///< where the first step may go, ascending
  std::vector<OrderRule> external_rules;
  bool has_captures = false;
};

/// Nothing if the graph lacks an op that the variant needs. Where the pattern computes its cost or asks a
/// predicate, its symmetries do not count: the functions may tell apart what the graph does not.
[[nodiscard]] std::optional<MatchPlan> plan_match(const Graph& graph, const Pattern& pattern,
                                                  const Variant& variant);

}  // namespace tessera::pattern
