// Problems to test and measure the solver on. The same arguments give the same problem on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/cover/cover.h"

namespace tessera::cover {

/// A small random generator whose numbers are part of the instances.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// In [0, count). REQUIRES count > 0.
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(next() % count); }
  /// In [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  /// True in `percent` of 100 cases.
  bool chance(std::uint32_t percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

enum class CostKind : std::uint8_t {
  unit,      ///< 1 a tile, node_count + 1 an uncovered node: most covered first, then fewest tiles
  whole,     ///< small whole numbers, with many ties
  fraction,  ///< numbers that binary fractions only approximate
};

struct RandomShape {
  std::uint32_t nodes = 12;
  std::uint32_t candidates = 20;  ///< of two nodes or more; fewer if the graph does not have them
  std::uint32_t edge_percent = 20;
  std::uint32_t reach = 512;          ///< edges lead at most so many nodes ahead
  std::uint32_t largest = 5;          ///< nodes in a candidate
  std::uint32_t single_percent = 70;  ///< of the nodes with a candidate of their own
  CostKind costs = CostKind::unit;
  bool shuffled = false;  ///< node numbers are not in topological order
};

/// Random convex candidates over a random DAG. Many pairs of them are cyclic.
[[nodiscard]] Problem random_problem(const RandomShape& shape, std::uint64_t seed);

/// The hard case: 60 nodes, 300 random convex candidates of 2 to 8 nodes, and one for each node alone.
[[nodiscard]] Problem dense_problem(std::uint32_t edge_percent, CostKind costs, std::uint64_t seed);

/// A ring of `tiles` two-node candidates that cannot all be chosen: p_i -> c_i within candidate i, and
/// p_i -> c_(i+1). Any proper subset is fine. Single nodes cost 1 each, candidates 1.
[[nodiscard]] Problem ring_problem(std::uint32_t tiles);

/// A chain with every run of 2 to `largest` nodes whose start matches the candidate's pattern, costs by
/// length.
[[nodiscard]] Problem chain_problem(std::uint32_t nodes, std::uint32_t largest);

/// `copies` disjoint chains a-b-c with candidates {ab}, {bc}, {a}.
[[nodiscard]] Problem copies_problem(std::uint32_t copies);

struct TransformerShape {
  std::uint32_t layers = 12;
  std::uint32_t largest_region = 8;
  std::uint32_t regions_per_node = 20;  ///< generated regions that start at one node, at most
};

/// A decoder of `layers` blocks of about 90 nodes, with library patterns and generated fusion regions that
/// overlap and reach across blocks.
[[nodiscard]] Problem transformer_problem(const TransformerShape& shape);

}  // namespace tessera::cover
