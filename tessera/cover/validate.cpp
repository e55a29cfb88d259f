#include "tessera/cover/validate.h"

#include <cmath>
#include <limits>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// Counts and offsets are kept in 32 bits.
constexpr std::size_t size_limit = std::numeric_limits<std::uint32_t>::max() / 2;

template <class... Args>
Error invalid(const Args&... args) {
  return Error(ErrorCode::invalid_argument, cat(args...));
}

bool is_cost(double cost) { return std::isfinite(cost) && cost >= 0; }

Result<void> validate_edges(const Problem& problem) {
  for (std::size_t i = 0; i < problem.edges.size(); ++i) {
    const Edge& edge = problem.edges[i];
    for (std::uint32_t node : {edge.producer, edge.consumer})
      if (node >= problem.node_count)
        return invalid("edge ", i, " names node ", node, ", expected one below ", problem.node_count);
    if (edge.producer == edge.consumer)
      return Error(ErrorCode::cycle, cat("edge ", i, " leads from node ", edge.producer, " to itself"));
  }
  return {};
}

Result<void> validate_uncovered(const Problem& problem) {
  if (problem.uncovered_cost.size() != problem.node_count)
    return invalid("uncovered_cost has ", problem.uncovered_cost.size(),
                   " entries, expected one for each of the ", problem.node_count, " nodes");
  for (std::size_t node = 0; node < problem.uncovered_cost.size(); ++node)
    if (!is_cost(problem.uncovered_cost[node]))
      return invalid("uncovered_cost of node ", node, " is ", problem.uncovered_cost[node],
                     ", expected a finite number that is not negative");
  return {};
}

/// Whether validate_candidate finds nothing. There may be millions.
bool is_valid(const Problem& problem, const Candidate& candidate) {
  if (!is_cost(candidate.cost) || candidate.nodes.empty()) return false;
  for (std::size_t i = 1; i < candidate.nodes.size(); ++i)
    if (candidate.nodes[i - 1] >= candidate.nodes[i]) return false;
  return candidate.nodes.back() < problem.node_count;
}

Result<void> validate_candidate(const Problem& problem, std::size_t index) {
  const Candidate& candidate = problem.candidates[index];
  if (!is_cost(candidate.cost))
    return invalid("cost of candidate ", index, " is ", candidate.cost,
                   ", expected a finite number that is not negative");
  if (candidate.nodes.empty()) return invalid("candidate ", index, " has no nodes");
  for (std::size_t i = 0; i < candidate.nodes.size(); ++i) {
    const std::uint32_t node = candidate.nodes[i];
    if (node >= problem.node_count)
      return invalid("candidate ", index, " names node ", node, ", expected one below ", problem.node_count);
    if (i > 0 && candidate.nodes[i - 1] >= node)
      return invalid("nodes of candidate ", index, " are not ascending: ", candidate.nodes[i - 1], " before ",
                     node);
  }
  return {};
}

Result<void> validate_total(const Problem& problem, double of_candidates) {
  double total = of_candidates;
  for (double cost : problem.uncovered_cost) total += cost;
  if (!std::isfinite(total)) return invalid("the costs add up to more than a double can hold");
  return {};
}

Result<void> validate_sizes(const Problem& problem, std::size_t entries) {
  if (problem.node_count > size_limit || problem.edges.size() > size_limit || entries > size_limit)
    return Error(ErrorCode::limit,
                 cat("a problem of ", problem.node_count, " nodes, ", problem.edges.size(), " edges and ",
                     entries, " nodes in candidates, expected at most ", size_limit, " of each"));
  return {};
}

}  // namespace

Result<void> tessera::cover::validate(const Problem& problem) {
  TESSERA_TRY(validate_sizes(problem, problem.candidates.size()));
  TESSERA_TRY(validate_uncovered(problem));
  TESSERA_TRY(validate_edges(problem));
  std::size_t entries = 0;
  double total = 0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    if (!is_valid(problem, problem.candidates[i])) TESSERA_TRY(validate_candidate(problem, i));
    entries += problem.candidates[i].nodes.size();
    total += problem.candidates[i].cost;
  }
  TESSERA_TRY(validate_sizes(problem, entries));
  return validate_total(problem, total);
}
