// Whether a set of nodes is convex: no path leaves it and comes back.
#pragma once

#include <span>
#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// Asked again and again about sets of one graph. Not thread-safe. REQUIRES the graph outlives it.
class Convexity {
 public:
  explicit Convexity(const Graph& graph);

  /// Two searches, ahead from where paths leave the set and back from where they enter it, take turns; the
  /// first that runs dry, or meets the set or the other, decides. A node is only looked at if depth, height
  /// and position leave a way back.
  [[nodiscard]] bool is_convex(std::span<const NodeId> nodes);
  /// How many nodes and edges all questions have looked at.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Bounds {
    std::uint32_t first = none, last = 0;  ///< positions
    std::uint32_t least_depth = none, most_depth = 0;
    std::uint32_t least_height = none, most_height = 0;
  };
  [[nodiscard]] bool joins_one_exit(std::span<const NodeId> nodes) const;
  [[nodiscard]] bool is_inside(NodeId node) const { return marks_[node] == inside_; }
  [[nodiscard]] bool may_lie_between(NodeId node) const;
  [[nodiscard]] bool look_around(std::span<const NodeId> nodes, bool is_ahead);
  [[nodiscard]] bool search();
  [[nodiscard]] bool look_ahead(NodeId node);
  [[nodiscard]] bool look_back(NodeId node);

  const Graph& graph_;
  Bounds bounds_;
  std::uint32_t inside_ =
      0;  ///< the marks of this call: inside, + 1 seen ahead of the set, + 2 seen behind it
  std::vector<std::uint32_t> marks_;
  std::uint64_t looks_ = 0;
  bool is_decided_ = false;  ///< one side found no way out or no way in
  std::vector<NodeId> ahead_;
  std::vector<NodeId> back_;
};

}  // namespace tessera::pattern
