#include "tessera/cover/copies.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tessera/base/check.h"
#include "tessera/cover/disjoint_sets.h"
#include "tessera/cover/fixed_cost.h"
#include "tessera/cover/schedule.h"
#include "tessera/cover/sequence_table.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

std::uint64_t pair_of(std::uint64_t a, std::uint64_t b) { return a << 32 | b; }

/// Numbers by the group that `group_of` gives each.
Grouped grouped(std::span<const std::uint32_t> group_of, std::uint32_t groups) {
  // begin[g + 1] first counts group g - 1, then is where the next of group g goes, at last where it ends.
  Grouped out{std::vector<std::uint32_t>(groups + std::size_t{2}, 0),
              std::vector<std::uint32_t>(group_of.size())};
  for (std::uint32_t group : group_of) ++out.begin[group + 2];
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  for (std::uint32_t i = 0; i < group_of.size(); ++i) out.items[out.begin[group_of[i] + 1]++] = i;
  out.begin.pop_back();
  return out;
}

/// For each node the number of its part; parts are numbered by their first nodes.
std::vector<std::uint32_t> parts_of(const Problem& problem, std::uint32_t& parts) {
  DisjointSets sets(problem.node_count);
  std::uint32_t left = problem.node_count;
  for (const Edge& edge : problem.edges) left -= sets.join(edge.producer, edge.consumer) ? 1 : 0;
  for (std::size_t i = 0; i < problem.candidates.size() && left > 1; ++i) {
    const auto& nodes = problem.candidates[i].nodes;
    for (std::size_t k = 1; k < nodes.size(); ++k) left -= sets.join(nodes[0], nodes[k]) ? 1 : 0;
  }
  std::vector<std::uint32_t> part(problem.node_count);
  parts = 0;
  for (std::uint32_t node = 0; node < problem.node_count; ++node) {
    const std::uint32_t first = sets.find(node);
    part[node] = first == node ? parts++ : part[first];
  }
  return part;
}

}  // namespace

std::optional<Copies> Copies::find(const Problem& problem) {
  Copies out(problem);
  if (!out.split()) return std::nullopt;
  out.find_kinds();
  if (out.first_of_.size() == out.kind_of_.size()) return std::nullopt;
  return out;
}

/// False if there is one part only.
bool Copies::split() {
  std::uint32_t parts = 0;
  const std::vector<std::uint32_t> part = parts_of(problem_, parts);
  if (parts < 2) return false;
  nodes_ = grouped(part, parts);
  std::vector<std::uint32_t> part_of;
  part_of.reserve(std::max(problem_.candidates.size(), problem_.edges.size()));
  for (const Candidate& candidate : problem_.candidates) part_of.push_back(part[candidate.nodes[0]]);
  candidates_ = grouped(part_of, parts);
  part_of.clear();
  for (const Edge& edge : problem_.edges) part_of.push_back(part[edge.producer]);
  edges_ = grouped(part_of, parts);
  local_.resize(part.size());
  for (std::uint32_t i = 0; i < nodes_.items.size(); ++i)
    local_[nodes_.items[i]] = i - nodes_.begin[part[nodes_.items[i]]];
  return true;
}

void Copies::find_kinds() {
  SequenceTable kinds;
  std::vector<std::uint64_t> words;
  kind_of_.reserve(nodes_.size());
  for (std::uint32_t p = 0; p < nodes_.size(); ++p) {
    // Copies mostly come one after the other: equality finds them faster than a hash.
    if (p > 0 && is_alike(first_of_[kind_of_.back()], p)) {
      kind_of_.push_back(kind_of_.back());
      continue;
    }
    encode(p, words);
    const std::uint32_t kind = kinds.intern(words);
    if (kind == first_of_.size()) first_of_.push_back(p);
    kind_of_.push_back(kind);
  }
}

/// Whether encode() gives the same words for both.
bool Copies::is_alike(std::uint32_t a, std::uint32_t b) const {
  const auto cost_bits = [&](std::uint32_t node) {
    return std::bit_cast<std::uint64_t>(problem_.uncovered_cost[node]);
  };
  const auto ends = [&](std::uint32_t edge) {
    return pair_of(local_[problem_.edges[edge].producer], local_[problem_.edges[edge].consumer]);
  };
  return std::ranges::equal(nodes_[a], nodes_[b], {}, cost_bits, cost_bits) &&
         std::ranges::equal(edges_[a], edges_[b], {}, ends, ends) &&
         std::ranges::equal(candidates_[a], candidates_[b], [&](std::uint32_t x, std::uint32_t y) {
           return is_alike(problem_.candidates[x], problem_.candidates[y]);
         });
}

bool Copies::is_alike(const Candidate& a, const Candidate& b) const {
  const auto local = [&](std::uint32_t node) { return local_[node]; };
  return std::bit_cast<std::uint64_t>(a.cost) == std::bit_cast<std::uint64_t>(b.cost) &&
         std::ranges::equal(a.nodes, b.nodes, {}, local, local);
}

void Copies::encode(std::uint32_t part, std::vector<std::uint64_t>& words) const {
  words.clear();
  words.push_back(pair_of(nodes_[part].size(), edges_[part].size()));
  for (std::uint32_t node : nodes_[part])
    words.push_back(std::bit_cast<std::uint64_t>(problem_.uncovered_cost[node]));
  for (std::uint32_t edge : edges_[part])
    words.push_back(pair_of(local_[problem_.edges[edge].producer], local_[problem_.edges[edge].consumer]));
  for (std::uint32_t i : candidates_[part]) {
    const Candidate& candidate = problem_.candidates[i];
    words.push_back(std::bit_cast<std::uint64_t>(candidate.cost));
    words.push_back(pair_of(candidate.nodes.size(), local_[candidate.nodes[0]]));
    for (std::size_t k = 1; k < candidate.nodes.size(); ++k) words.push_back(local_[candidate.nodes[k]]);
  }
}

Problem Copies::one_of_each() const {
  Problem out;
  for (std::uint32_t part : first_of_) {
    for (std::uint32_t node : nodes_[part]) out.uncovered_cost.push_back(problem_.uncovered_cost[node]);
    const auto moved = [&](std::uint32_t node) { return out.node_count + local_[node]; };
    for (std::uint32_t edge : edges_[part])
      out.edges.push_back({moved(problem_.edges[edge].producer), moved(problem_.edges[edge].consumer)});
    for (std::uint32_t i : candidates_[part]) {
      Candidate& candidate = out.candidates.emplace_back(problem_.candidates[i]);
      for (std::uint32_t& node : candidate.nodes) node = moved(node);
    }
    out.node_count += static_cast<std::uint32_t>(nodes_[part].size());
  }
  return out;
}

/// Where the parts of one_of_each() lie in it.
struct Copies::Spread {
  std::vector<std::uint32_t> kind_of_node, local_node;
  std::vector<std::uint32_t> kind_of_candidate, local_candidate;

  explicit Spread(const Copies& copies) {
    for (std::uint32_t kind = 0; kind < copies.first_of_.size(); ++kind) {
      const std::uint32_t part = copies.first_of_[kind];
      for (std::uint32_t i = 0; i < copies.nodes_[part].size(); ++i) {
        kind_of_node.push_back(kind);
        local_node.push_back(i);
      }
      for (std::uint32_t i = 0; i < copies.candidates_[part].size(); ++i) {
        kind_of_candidate.push_back(kind);
        local_candidate.push_back(i);
      }
    }
  }
};

/// The step that runs a node, and the first node of that step.
struct Copies::Place {
  Step step;
  std::uint32_t first = 0;
};

Solution Copies::for_all(const Solution& each) const {
  Solution out;
  take_steps(each, out);
  take_subproblems(each, out);
  out.optimal = each.optimal;
  if (out.optimal) {
    out.bound = out.cost;
  } else {
    RealSum bound;
    bound.add(out.cost);
    for (const Subproblem& part : out.subproblems) bound.add(part.bound - part.cost);
    out.bound = std::clamp(bound.value(), 0.0, out.cost);
  }
  return out;
}

/// What is chosen, and an order for it: by the first nodes where that can run, as solving the whole gives it.
void Copies::take_steps(const Solution& each, Solution& out) const {
  const Spread spread(*this);
  const auto kinds = static_cast<std::uint32_t>(first_of_.size());
  std::vector<std::uint32_t> kind_of_step;
  for (const Step& step : each.order)
    kind_of_step.push_back(step.kind == Step::Kind::tile ? spread.kind_of_candidate[step.index]
                                                         : spread.kind_of_node[step.index]);
  const Grouped steps = grouped(kind_of_step, kinds);
  std::vector<Place> place_of(problem_.node_count);
  for (std::uint32_t part = 0; part < kind_of_.size(); ++part)
    for (std::uint32_t i : steps[kind_of_[part]]) {
      const Step& step = each.order[i];
      if (step.kind == Step::Kind::node) {
        const std::uint32_t node = nodes_[part][spread.local_node[step.index]];
        place_of[node] = {{Step::Kind::node, node}, node};
        continue;
      }
      const std::uint32_t candidate = candidates_[part][spread.local_candidate[step.index]];
      const auto& nodes = problem_.candidates[candidate].nodes;
      for (std::uint32_t node : nodes) place_of[node] = {{Step::Kind::tile, candidate}, nodes[0]};
    }
  set_order(place_of, out);
}

void Copies::set_order(std::span<const Place> place_of, Solution& out) const {
  out.order.reserve(problem_.node_count);
  std::vector<bool> is_chosen(problem_.candidates.size(), false);
  RealSum cost;
  for (std::uint32_t node = 0; node < problem_.node_count; ++node) {
    const auto& [step, first] = place_of[node];
    if (first != node) continue;
    out.order.push_back(step);
    if (step.kind == Step::Kind::tile) {
      is_chosen[step.index] = true;
      cost.add(problem_.candidates[step.index].cost);
    } else {
      out.uncovered.push_back(node);
      cost.add(problem_.uncovered_cost[node]);
    }
  }
  out.cost = cost.value();
  out.chosen.reserve(out.order.size() - out.uncovered.size());
  for (std::uint32_t i = 0; i < is_chosen.size(); ++i)
    if (is_chosen[i]) out.chosen.push_back(i);
  const bool is_in_order = std::ranges::all_of(problem_.edges, [&](const Edge& edge) {
    return place_of[edge.producer].first <= place_of[edge.consumer].first;
  });
  if (!is_in_order) out.order = scheduled(place_of, out.order);
}

/// The steps, which stand by their first nodes, in an order in which they can run.
std::vector<Step> Copies::scheduled(std::span<const Place> place_of, std::span<const Step> steps) const {
  std::vector<std::uint32_t> group_of(problem_.node_count);
  std::uint32_t groups = 0;
  for (std::uint32_t node = 0; node < problem_.node_count; ++node)
    group_of[node] = place_of[node].first == node ? groups++ : group_of[place_of[node].first];
  const auto order = schedule(make_precedence(problem_.node_count, problem_.edges), group_of, groups);
  TESSERA_CHECK(order.has_value(), "the tiling has a cycle");
  std::vector<Step> out;
  for (std::uint32_t group : *order) out.push_back(steps[group]);
  return out;
}

void Copies::take_subproblems(const Solution& each, Solution& out) const {
  const Spread spread(*this);
  std::vector<std::uint32_t> kind_of_subproblem;
  for (const Subproblem& part : each.subproblems)
    kind_of_subproblem.push_back(spread.kind_of_node[part.nodes[0]]);
  const Grouped by_kind = grouped(kind_of_subproblem, static_cast<std::uint32_t>(first_of_.size()));
  std::vector<std::uint32_t> place_of(each.subproblems.size());  // of those that are solved
  std::uint32_t count = 0;
  for (std::uint32_t part = 0; part < kind_of_.size(); ++part)
    for (std::uint32_t i : by_kind[kind_of_[part]]) {
      if (first_of_[kind_of_[part]] == part) place_of[i] = count;
      ++count;
    }
  out.subproblems.reserve(count);
  for (std::uint32_t part = 0; part < kind_of_.size(); ++part)
    for (std::uint32_t i : by_kind[kind_of_[part]]) {
      Subproblem& copy = out.subproblems.emplace_back(each.subproblems[i]);
      copy.same_as = place_of[copy.same_as];
      if (first_of_[kind_of_[part]] != part) copy.states = 0;
      for (std::uint32_t& node : copy.nodes) node = nodes_[part][spread.local_node[node]];
    }
}
