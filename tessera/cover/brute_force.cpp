#include "tessera/cover/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// Extends a tiling node by node, tries everything that is cheaper than the best, and looks for a cycle at
/// the end.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem), group_of_(problem.node_count, none) {}

  double run() {
    extend(0, 0, 0);
    return best_;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  void extend(std::uint32_t node, std::uint32_t groups, double cost) {
    while (node < problem_.node_count && group_of_[node] != none) ++node;
    if (cost >= best_) return;
    if (node == problem_.node_count) {
      if (is_acyclic(groups)) best_ = cost;
      return;
    }
    group_of_[node] = groups;
    extend(node + 1, groups + 1, cost + problem_.uncovered_cost[node]);
    group_of_[node] = none;
    for (const Candidate& candidate : problem_.candidates) {
      if (candidate.nodes[0] != node) continue;
      if (std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                      [&](std::uint32_t n) { return group_of_[n] != none; }))
        continue;
      for (std::uint32_t n : candidate.nodes) group_of_[n] = groups;
      extend(node + 1, groups + 1, cost + candidate.cost);
      for (std::uint32_t n : candidate.nodes) group_of_[n] = none;
    }
  }

  /// Takes groups away that need no other, until none is left or none can be taken.
  [[nodiscard]] bool is_acyclic(std::uint32_t groups) const {
    std::uint32_t left = (std::uint32_t{1} << groups) - 1;
    while (left != 0) {
      std::uint32_t needy = 0;
      for (const Edge& edge : problem_.edges) {
        const std::uint32_t from = group_of_[edge.producer];
        const std::uint32_t to = group_of_[edge.consumer];
        if (from != to && (left >> from & 1) != 0) needy |= std::uint32_t{1} << to;
      }
      if ((left & ~needy) == 0) return false;
      left &= needy;
    }
    return true;
  }

  const Problem& problem_;
  std::vector<std::uint32_t> group_of_;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Where each node runs in the order; an explanation if some node runs twice or never.
std::string find_times(const Problem& problem, const Solution& solution, std::vector<std::uint32_t>& time) {
  time.assign(problem.node_count, 0);
  std::uint32_t now = 0;
  for (const Step& step : solution.order) {
    ++now;
    SmallVector<std::uint32_t, 8> nodes{step.index};
    if (step.kind == Step::Kind::tile) nodes = problem.candidates.at(step.index).nodes;
    for (std::uint32_t node : nodes) {
      if (time.at(node) != 0) return cat("node ", node, " runs twice");
      time[node] = now;
    }
  }
  for (std::uint32_t node = 0; node < problem.node_count; ++node)
    if (time[node] == 0) return cat("node ", node, " never runs");
  return {};
}

std::string compare_lists(const Solution& solution) {
  std::vector<std::uint32_t> tiles;
  std::vector<std::uint32_t> nodes;
  for (const Step& step : solution.order)
    (step.kind == Step::Kind::tile ? tiles : nodes).push_back(step.index);
  std::sort(tiles.begin(), tiles.end());
  std::sort(nodes.begin(), nodes.end());
  if (tiles != solution.chosen) return "the order does not have the chosen tiles";
  if (nodes != solution.uncovered) return "the order does not have the uncovered nodes";
  return {};
}

}  // namespace

double tessera::cover::brute_force_cost(const Problem& problem) { return BruteForce(problem).run(); }

std::string tessera::cover::explain_invalid(const Problem& problem, const Solution& solution) {
  if (std::string why = compare_lists(solution); !why.empty()) return why;
  std::vector<std::uint32_t> time;
  if (std::string why = find_times(problem, solution, time); !why.empty()) return why;
  for (const Edge& edge : problem.edges)
    if (time[edge.producer] > time[edge.consumer])
      return cat("node ", edge.consumer, " runs before its input ", edge.producer);
  double cost = 0;
  for (std::uint32_t i : solution.chosen) cost += problem.candidates[i].cost;
  for (std::uint32_t node : solution.uncovered) cost += problem.uncovered_cost[node];
  const double tolerance = 1e-9 * (1 + std::abs(cost));
  if (std::abs(cost - solution.cost) > tolerance) return cat("costs ", cost, ", claims ", solution.cost);
  if (solution.bound > solution.cost + tolerance) return cat("bound ", solution.bound, " above cost ", cost);
  if (solution.optimal && solution.bound < solution.cost - tolerance) return "optimal with a gap";
  return {};
}
