#include "tessera/pattern/convexity.h"

#include <algorithm>

using namespace tessera::pattern;

Convexity::Convexity(const Graph& graph) : graph_(graph), marks_(graph.node_count(), 0) {}

/// Whether at most one node has a successor outside and every other leads somewhere. Then every node leads to
/// that one, and a path from it back into the set would close a cycle of the graph.
bool Convexity::joins_one_exit(std::span<const NodeId> nodes) const {
  bool has_exit = false;
  bool has_dead_end = false;
  for (NodeId node : nodes) {
    const auto next = graph_.successors(node);
    if (std::ranges::all_of(next, [&](NodeId other) { return is_inside(other); })) {
      has_dead_end = has_dead_end || next.empty();
      continue;
    }
    if (has_exit) return false;
    has_exit = true;
  }
  return !has_exit || !has_dead_end;
}

bool Convexity::may_lie_between(NodeId node) const {
  const std::uint32_t position = graph_.position(node);
  const std::uint32_t depth = graph_.depth(node);
  const std::uint32_t height = graph_.height(node);
  return position > bounds_.first && position < bounds_.last && depth > bounds_.least_depth &&
         depth < bounds_.most_depth && height > bounds_.least_height && height < bounds_.most_height;
}

/// Puts the successors outside on the list. False if one of them leads back.
bool Convexity::look_ahead(NodeId node) {
  const bool is_member = is_inside(node);
  looks_ += graph_.successors(node).size();
  for (NodeId next : graph_.successors(node)) {
    if (marks_[next] == inside_ && is_member) continue;
    if (marks_[next] == inside_ || marks_[next] == inside_ + 2) return false;
    if (marks_[next] == inside_ + 1 || !may_lie_between(next)) continue;
    marks_[next] = inside_ + 1;
    ahead_.push_back(next);
  }
  return true;
}

/// Puts the predecessors outside on the list. False if the set leads to one of them.
bool Convexity::look_back(NodeId node) {
  const bool is_member = is_inside(node);
  looks_ += graph_.predecessors(node).size();
  for (NodeId before : graph_.predecessors(node)) {
    if (marks_[before] == inside_ && is_member) continue;
    if (marks_[before] == inside_ || marks_[before] == inside_ + 1) return false;
    if (marks_[before] == inside_ + 2 || !may_lie_between(before)) continue;
    marks_[before] = inside_ + 2;
    back_.push_back(before);
  }
  return true;
}

/// Begins the search on one side. False if the set is not convex; if nothing is found, search() ends at once.
bool Convexity::look_around(std::span<const NodeId> nodes, bool is_ahead) {
  if (is_decided_) return true;
  for (NodeId node : nodes)
    if (!(is_ahead ? look_ahead(node) : look_back(node))) return false;
  is_decided_ = (is_ahead ? ahead_ : back_).empty();
  return true;
}

bool Convexity::search() {
  while (!ahead_.empty() && !back_.empty()) {
    const NodeId next = ahead_.back();
    ahead_.pop_back();
    if (!look_ahead(next)) return false;
    const NodeId before = back_.back();
    back_.pop_back();
    if (!look_back(before)) return false;
  }
  return true;
}

bool Convexity::is_convex(std::span<const NodeId> nodes) {
  if (nodes.size() < 2) return true;
  if (inside_ >= none - 8) {
    inside_ = 0;
    std::ranges::fill(marks_, 0);
  }
  inside_ += 3;
  looks_ += nodes.size();
  for (NodeId node : nodes) marks_[node] = inside_;
  if (joins_one_exit(nodes)) return true;

  bounds_ = {};
  is_decided_ = false;
  for (NodeId node : nodes) {
    bounds_.first = std::min(bounds_.first, graph_.position(node));
    bounds_.last = std::max(bounds_.last, graph_.position(node));
    bounds_.least_depth = std::min(bounds_.least_depth, graph_.depth(node));
    bounds_.most_depth = std::max(bounds_.most_depth, graph_.depth(node));
    bounds_.least_height = std::min(bounds_.least_height, graph_.height(node));
    bounds_.most_height = std::max(bounds_.most_height, graph_.height(node));
  }
  if (bounds_.most_depth < bounds_.least_depth + 2) return true;  // no room for a node in between
  ahead_.clear();
  back_.clear();
  std::size_t next = 0;
  std::size_t before = 0;
  for (NodeId node : nodes) {
    next += graph_.successors(node).size();
    before += graph_.predecessors(node).size();
  }
  // The side with fewer edges first: often it decides, and a value may have very many readers.
  const bool ahead_first = next < before;
  return look_around(nodes, ahead_first) && look_around(nodes, !ahead_first) && search();
}
