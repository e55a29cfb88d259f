// Finds every place where a pattern fits a graph.
//
// A match maps pattern nodes to nodes of the graph one to one. Ops, attributes and dtypes agree; inputs agree
// slot by slot, as a multiset where the op is commutative; a name of an external input stands for one value
// from outside the match; what escapes is declared as an output; and the match is convex. Of matches that a
// symmetry of the pattern maps onto each other, one is found. Of further matches over the same nodes the
// search tells up to 64 in a row: they cost the same, and whoever chooses tiles takes one. Where the pattern
// computes its cost or asks a predicate, there is no such limit.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/cover/effort.h"
#include "tessera/pattern/convexity.h"
#include "tessera/pattern/match_plan.h"
#include "tessera/pattern/tile.h"

namespace tessera::pattern {

/// A match that was found; valid until the search goes on.
struct Match {
  std::span<const NodeId> nodes;                ///< all that it covers, ascending
  std::span<const NodeId> images;               ///< by node of the variant; of a chain the last
  std::span<const std::vector<NodeId>> chains;  ///< by node of the variant: all ops of a chain, else empty
  std::span<const ValueId>
      externals;  ///< by external of the pattern; `none` if the variant has no use for it
};

/// What matching needs beside the graph, kept from one pattern to the next. REQUIRES the graph outlives it.
struct MatchSpace {
  explicit MatchSpace(const Graph& graph) : owner(graph.node_count(), 0), convexity(graph) {}
  std::vector<std::uint32_t> owner;  ///< by node of the graph: the pattern node bound to it + 1, or 0
  Convexity convexity;
};

/// Told of each match; false ends the search.
using MatchVisitor = std::function<bool(const Match&)>;

/// How a search ended.
enum class SearchEnd : std::uint8_t {
  complete,        ///< every match was told
  chains_missing,  ///< every match but some with long chains
  stopped,         ///< the visitor ended it, or the effort was over
  gave_up,         ///< it took too many steps
};

/// Depth and length of the graph do not matter for the stack. A run of n ops holds n * n / 2 chains: in small
/// graphs all are found, in large ones those up to longest_full_chain(graph) ops and, as far as they have no
/// more than a few times the nodes of the graph together, those that cannot be longer.
SearchEnd find_matches(const Graph& graph, const Pattern& pattern, const Variant& variant, MatchSpace& space,
                       const MatchVisitor& visit, cover::Effort& effort);

/// The length up to which all chains are found: at least 16, and the whole graph up to 200 nodes.
[[nodiscard]] std::uint32_t longest_full_chain(const Graph& graph);

/// The values that a match captured, in the order of the pattern.
[[nodiscard]] std::vector<Capture> captures_of(const Graph& graph, const Pattern& pattern,
                                               const Variant& variant, std::span<const NodeId> images,
                                               std::span<const ValueId> externals);

}  // namespace tessera::pattern
