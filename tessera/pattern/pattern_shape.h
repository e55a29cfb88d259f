// A variant of a pattern as a graph of vertices: what its symmetries are about.
//
// Nodes and externals are the vertices. A vertex with one use hangs on its consumer alone: it is *private*,
// unless it is a node that takes a shared external. The others are the *core*: sinks, what is used several
// times, and the nodes that take a shared external. Every private vertex is in the tree of exactly one core
// vertex, and where the core stays in place, a tree can only be mapped onto itself: by exchanging equal
// branches of commutative nodes. Where the nodes of the core stay in place, an exchange of its externals
// moves nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

struct PatternShape {
  /// What stands in a slot: result `result` of a vertex, or anything (`none`).
  struct Slot {
    std::uint32_t vertex = none;
    std::uint32_t result = 0;
  };

  std::uint32_t nodes = 0;                ///< vertices below are nodes, the others externals
  std::vector<std::uint32_t> kinds;       ///< by vertex; vertices of different kinds are never exchanged
  std::vector<std::vector<Slot>> slots;   ///< by node
  std::vector<bool> is_commutative;       ///< by node: its slots may be permuted
  std::vector<std::uint32_t> uses;        ///< by vertex: how many slots it stands in
  std::vector<bool> is_private;           ///< by vertex
  std::vector<std::uint32_t> from_below;  ///< the nodes, producers before their consumers

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(kinds.size()); }
};

[[nodiscard]] PatternShape shape_of(const Variant& variant, const std::vector<PatternExternal>& externals,
                                    const std::vector<bool>& is_commutative);

/// Numbers for the trees of vertices: equal exactly if the trees are equal up to the order of the slots of
/// commutative nodes, with the same core vertices at the same places.
class TreeClasses {
 public:
  explicit TreeClasses(const PatternShape& shape) : shape_(shape) {}

  /// By vertex. `labels`, by vertex, are the names by which core vertices are known; numbers of two calls
  /// compare.
  [[nodiscard]] std::vector<std::uint32_t> number(std::span<const std::uint32_t> labels);

 private:
  const PatternShape& shape_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> known_;
};

}  // namespace tessera::pattern
