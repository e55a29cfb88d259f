#include "tessera/pattern/tiler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Clock = std::chrono::steady_clock;

/// What reading and covering a candidate takes where they are hard to read. Few are always worth it.
constexpr std::uint64_t candidate_work = 5'000;
constexpr std::size_t candidates_at_least = 20'000;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

namespace tessera::pattern {

class Tiler {
 public:
  Tiler(const Graph& graph, const Target& target, const TileOptions& options)
      : graph_(graph), target_(target), options_(options), start_(Clock::now()) {}

  Result<Tiling> run() {
    CandidateList list = empty_list();
    TESSERA_TRY(list_candidates(list));
    out_.list_ms = milliseconds_since(start_);
    const auto solving = Clock::now();
    cover::Problem problem = TESSERA_TRY(make_problem(list));
    cover::Options solver = options_.solver;
    list.effort_.set_end(end_);
    solver.work = list.effort_.work_left();
    solver.budget = list.effort_.time_left();
    cover::Solution solution = TESSERA_TRY(cover::solve(problem, solver));
    list.sets_ = std::move(problem.candidates);
    take(std::move(solution), list);
    if (list.was_cut()) {
      out_.optimal = false;
      out_.bound = 0;
      out_.gap = out_.cost > 0 ? 1 : 0;
    }
    out_.solve_ms = milliseconds_since(solving);
    if (options_.keep_candidates) out_.list = std::move(list);
    return std::move(out_);
  }

 private:
  /// Reading candidates takes work, too, and cannot be cut short: a budget limits how many there are.
  [[nodiscard]] CandidateList empty_list() {
    const cover::Effort effort(options_.work, options_.budget);
    ListLimits limits = target_.limits;
    std::uint64_t most = effort.work_left().value_or(limits.candidates * candidate_work);
    if (const auto time = effort.time_left())
      most = std::min<std::uint64_t>(most, std::chrono::nanoseconds(*time).count());
    limits.candidates = std::min(limits.candidates, candidates_at_least + most / candidate_work);
    CandidateList list(limits);
    list.is_short_of_effort_ = limits.candidates < target_.limits.candidates;
    list.effort_ = effort;
    end_ = effort.end();
    // What is listed must be read, covered and described as well, which may take as long as listing it.
    list.end_ = effort.share(end_, 2);
    return list;
  }

  Result<void> list_candidates(CandidateList& list) const {
    for (std::size_t i = 0; i < target_.sources.size(); ++i) {
      list.begin_source(static_cast<std::uint32_t>(target_.sources.size() - i));
      TESSERA_TRY(target_.sources[i]->list(graph_, list));
    }
    return {};
  }

  Result<cover::Problem> make_problem(CandidateList& list) {
    cover::Problem problem{.node_count = graph_.node_count()};
    problem.edges.reserve(graph_.edge_count());
    for (NodeId node = 0; node < graph_.node_count(); ++node)
      for (NodeId before : graph_.predecessors(node)) problem.edges.push_back({before, node});
    problem.candidates = std::move(list.sets_);
    if (options_.objective == Objective::coverage)
      for (cover::Candidate& candidate : problem.candidates) candidate.cost = 1;
    problem.uncovered_cost = TESSERA_TRY(uncovered_costs(problem));
    out_.candidates = problem.candidates.size();
    if (!problem.uncovered_cost.empty())
      out_.uncovered_cost = *std::ranges::max_element(problem.uncovered_cost);
    return problem;
  }

  Result<std::vector<double>> uncovered_costs(const cover::Problem& problem) const {
    std::vector<double> costs;
    if (options_.objective == Objective::coverage) {
      costs.assign(graph_.node_count(), graph_.node_count() + 1.0);
    } else if (options_.uncovered_cost) {
      costs.assign(graph_.node_count(), *options_.uncovered_cost);
    } else if (target_.uncovered_cost != nullptr) {
      for (NodeId node = 0; node < graph_.node_count(); ++node)
        costs.push_back(target_.uncovered_cost(graph_, node));
    } else {
      costs.assign(graph_.node_count(), more_than_any_tiling(problem));
      if (!costs.empty() && !std::isfinite(costs[0]))
        return Error(ErrorCode::invalid_argument,
                     "the costs of the tiles add up to more than a double can hold; give smaller ones");
    }
    for (NodeId node = 0; node < graph_.node_count(); ++node) {
      if (graph_.is_opaque(node)) costs[node] = 0;  // no tile can cover it: it is run by other means anyway
      if (!(costs[node] >= 0 && costs[node] <= std::numeric_limits<double>::max()))
        return Error(ErrorCode::invalid_argument,
                     cat("the cost of leaving node ", quote(graph_.id(node)), " uncovered is ", costs[node],
                         ", expected a finite number of at least 0"));
    }
    return costs;
  }
  /// Tiles do not overlap, so each has a node of its own to be counted at.
  [[nodiscard]] double more_than_any_tiling(const cover::Problem& problem) const {
    std::vector<double> dearest(graph_.node_count(), 0);
    for (const cover::Candidate& candidate : problem.candidates)
      for (std::uint32_t node : candidate.nodes) dearest[node] = std::max(dearest[node], candidate.cost);
    double sum = 1;
    for (double cost : dearest) sum += cost;
    return sum;
  }

  void take(cover::Solution solution, const CandidateList& list) {
    out_.cost = solution.cost;
    out_.bound = solution.bound;
    out_.optimal = solution.optimal;
    out_.gap = solution.gap();
    out_.uncovered = std::move(solution.uncovered);
    out_.subproblems = std::move(solution.subproblems);
    out_.gaps = list.gaps();
    out_.tiles.reserve(solution.chosen.size());
    out_.order.reserve(solution.order.size());
    for (const cover::Step& step : solution.order) {
      if (step.kind == cover::Step::Kind::node) {
        out_.order.push_back({TilingStep::Kind::node, step.index});
        continue;
      }
      out_.order.push_back({TilingStep::Kind::tile, static_cast<std::uint32_t>(out_.tiles.size())});
      const std::uint32_t source = list.source(step.index);
      Tile& tile = out_.tiles.emplace_back();
      target_.sources[source]->describe(graph_, list, step.index, tile);
      tile.source = source;
      tile.cost = list.cost(step.index);
    }
  }

  const Graph& graph_;
  const Target& target_;
  const TileOptions& options_;
  Clock::time_point start_;
  cover::Effort::End end_;  ///< of listing and covering
  Tiling out_;
};

}  // namespace tessera::pattern

Result<Tiling> tessera::pattern::tile(const Graph& graph, const Target& target, const TileOptions& options) {
  return Tiler(graph, target, options).run();
}
