#include "tessera/cover/instances.h"

#include <algorithm>
#include <bitset>
#include <numeric>
#include <set>

using namespace tessera::cover;

namespace {

constexpr std::size_t most_random_nodes = 512;
using Region = std::bitset<most_random_nodes>;

/// Draws candidates that are convex in a random DAG.
class RandomBuilder {
 public:
  RandomBuilder(const RandomShape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), after_(shape.nodes), before_(shape.nodes), touching_(shape.nodes) {}

  Problem build() {
    problem_.node_count = shape_.nodes;
    add_edges();
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      if (random_.chance(shape_.single_percent)) add_candidate(Region().set(node));
    add_regions();
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      problem_.uncovered_cost.push_back(uncovered_cost());
    if (shape_.shuffled) shuffle();
    return std::move(problem_);
  }

 private:
  void add_edges() {
    for (std::uint32_t to = 0; to < shape_.nodes; ++to)
      for (std::uint32_t from = to - std::min(to, shape_.reach); from < to; ++from)
        if (random_.chance(shape_.edge_percent)) {
          problem_.edges.push_back({from, to});
          before_[to] |= before_[from];
          before_[to].set(from);
          touching_[from].set(to);
          touching_[to].set(from);
        }
    for (std::uint32_t to = 0; to < shape_.nodes; ++to)
      for (std::uint32_t from = 0; from < to; ++from)
        if (before_[to][from]) after_[from].set(to);
  }

  void add_regions() {
    std::uint32_t added = 0;
    for (std::uint32_t attempt = 0; added < shape_.candidates && attempt < 200 * shape_.candidates;
         ++attempt) {
      const Region region = grow(random_.between(2, shape_.largest));
      if (region.count() < 2 || !seen_.insert(region.to_string()).second) continue;
      add_candidate(region);
      ++added;
    }
  }

  /// A connected convex set of about `size` nodes.
  Region grow(std::uint32_t size) {
    Region region;
    region.set(random_.below(shape_.nodes));
    while (region.count() < size) {
      const std::vector<std::uint32_t> neighbours = neighbours_of(region);
      if (neighbours.empty()) break;
      Region larger = region;
      larger.set(neighbours[random_.below(static_cast<std::uint32_t>(neighbours.size()))]);
      close(larger);
      if (larger.count() > shape_.largest) break;
      region = larger;
    }
    return region;
  }
  [[nodiscard]] std::vector<std::uint32_t> neighbours_of(const Region& region) const {
    Region all;
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      if (region[node]) all |= touching_[node];
    std::vector<std::uint32_t> out;
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      if (all[node] && !region[node]) out.push_back(node);
    return out;
  }
  /// Adds every node on a path between two nodes of the region.
  void close(Region& region) const {
    Region behind;
    Region ahead;
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      if (region[node]) {
        behind |= before_[node];
        ahead |= after_[node];
      }
    region |= behind & ahead;
  }

  void add_candidate(const Region& nodes) {
    Candidate candidate;
    for (std::uint32_t node = 0; node < shape_.nodes; ++node)
      if (nodes[node]) candidate.nodes.push_back(node);
    candidate.cost = tile_cost(static_cast<std::uint32_t>(candidate.nodes.size()));
    problem_.candidates.push_back(std::move(candidate));
  }
  double tile_cost(std::uint32_t size) {
    switch (shape_.costs) {
      case CostKind::unit:
        return 1;
      case CostKind::whole:
        return random_.between(2, 2 + 2 * size);
      case CostKind::fraction:
        return 1 + 0.001 * random_.below(300 * size);
    }
    return 1;
  }
  double uncovered_cost() {
    switch (shape_.costs) {
      case CostKind::unit:
        return shape_.nodes + 1.0;
      case CostKind::whole:
        return random_.between(2, 9);
      case CostKind::fraction:
        return 1 + 0.001 * random_.below(2000);
    }
    return 1;
  }

  void shuffle() {
    std::vector<std::uint32_t> name(shape_.nodes);
    std::iota(name.begin(), name.end(), 0U);
    for (std::uint32_t i = shape_.nodes; i > 1; --i) std::swap(name[i - 1], name[random_.below(i)]);
    for (Edge& edge : problem_.edges) edge = {name[edge.producer], name[edge.consumer]};
    for (Candidate& candidate : problem_.candidates) {
      for (std::uint32_t& node : candidate.nodes) node = name[node];
      std::sort(candidate.nodes.begin(), candidate.nodes.end());
    }
    std::vector<double> costs(shape_.nodes);
    for (std::uint32_t i = 0; i < shape_.nodes; ++i) costs[name[i]] = problem_.uncovered_cost[i];
    problem_.uncovered_cost = std::move(costs);
  }

  const RandomShape& shape_;
  Random random_;
  std::vector<Region> after_;
  std::vector<Region> before_;
  std::vector<Region> touching_;
  std::set<std::string> seen_;
  Problem problem_;
};

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

Problem tessera::cover::random_problem(const RandomShape& shape, std::uint64_t seed) {
  return RandomBuilder(shape, seed).build();
}

Problem tessera::cover::dense_problem(std::uint32_t edge_percent, CostKind costs, std::uint64_t seed) {
  return random_problem({.nodes = 60,
                         .candidates = 300,
                         .edge_percent = edge_percent,
                         .largest = 8,
                         .single_percent = 100,
                         .costs = costs},
                        seed);
}

Problem tessera::cover::ring_problem(std::uint32_t tiles) {
  Problem problem;
  problem.node_count = 2 * tiles;
  for (std::uint32_t i = 0; i < tiles; ++i) {
    const std::uint32_t next = (i + 1) % tiles;
    problem.edges.push_back({i, tiles + i});
    problem.edges.push_back({i, tiles + next});
    problem.candidates.push_back({.nodes = {i, tiles + i}, .cost = 1});
  }
  problem.uncovered_cost.assign(problem.node_count, 1);
  return problem;
}

Problem tessera::cover::chain_problem(std::uint32_t nodes, std::uint32_t largest) {
  Problem problem;
  problem.node_count = nodes;
  for (std::uint32_t node = 0; node + 1 < nodes; ++node) problem.edges.push_back({node, node + 1});
  for (std::uint32_t first = 0; first < nodes; ++first)
    for (std::uint32_t size = 1; size <= largest && first + size <= nodes; ++size) {
      Candidate candidate;
      for (std::uint32_t i = 0; i < size; ++i) candidate.nodes.push_back(first + i);
      candidate.cost = 1 + 0.25 * ((7 * (first % 12) + 5 * size) % 11);
      problem.candidates.push_back(std::move(candidate));
    }
  problem.uncovered_cost.assign(nodes, 100);
  return problem;
}

Problem tessera::cover::copies_problem(std::uint32_t copies) {
  Problem problem;
  problem.node_count = 3 * copies;
  for (std::uint32_t a = 0; a < problem.node_count; a += 3) {
    problem.edges.insert(problem.edges.end(), {{a, a + 1}, {a + 1, a + 2}});
    problem.candidates.push_back({.nodes = {a, a + 1}});
    problem.candidates.push_back({.nodes = {a + 1, a + 2}});
    problem.candidates.push_back({.nodes = {a}});
  }
  problem.uncovered_cost.assign(problem.node_count, problem.node_count + 1.0);
  return problem;
}
