// Laws of the tiler on random graphs and libraries: the matcher finds exactly what the definition says, and
// the tiling costs what the best of all tilings costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tessera/base/text.h"
#include "tessera/cover/brute_force.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/convexity.h"
#include "tessera/pattern/graph_builder.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/matcher.h"
#include "tessera/pattern/pattern_text.h"
#include "tessera/pattern/tiler.h"
#include "tests/support/brute_matcher.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::pattern;
using namespace tessera::test;

namespace {

class RandomTiling {
 public:
  explicit RandomTiling(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return random_() % limit; }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  /// add and mul are commutative, sub and neg are not, split has two results.
  Graph graph(std::uint32_t most_nodes) {
    GraphBuilder builder(op::op_facts());
    std::vector<ValueId> values{builder.input("p"), builder.input("q"), builder.input("r")};
    const std::uint32_t nodes = 2 + below(most_nodes - 1);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      static constexpr const char* ops[] = {"add", "mul", "sub", "neg", "split"};
      const std::uint32_t op = below(5);
      NodeParts parts{.id = cat(i), .op = ops[op]};
      parts.results.resize(op == 4 ? 2 : 1);
      const NodeId node = builder.add_node(std::move(parts));
      std::vector<ValueId> inputs;
      const std::uint32_t arity = op < 2 && chance(20) ? 3 : op < 3 ? 2 : 1;
      for (std::uint32_t k = 0; k < arity; ++k) inputs.push_back(recent(values));
      builder.set_inputs(node, std::move(inputs));
      for (std::uint32_t k = 0; k < (op == 4 ? 2U : 1U); ++k) values.push_back(builder.result(node, k));
    }
    builder.set_sinks_as_outputs();
    if (chance(30)) builder.set_output(builder.result(below(nodes)));
    return value_or_throw(std::move(builder).build());
  }

  /// A connected piece of the graph, changed a little so that it may fit elsewhere, or nowhere.
  PatternParts pattern(const Graph& graph, std::uint32_t most_nodes) {
    std::vector<NodeId> piece{below(graph.node_count())};
    for (std::uint32_t tries = below(2 * most_nodes); tries > 0 && piece.size() < most_nodes; --tries) {
      const NodeId from = piece[below(static_cast<std::uint32_t>(piece.size()))];
      const auto around = chance(50) ? graph.predecessors(from) : graph.successors(from);
      if (around.empty()) continue;
      const NodeId other = around[below(static_cast<std::uint32_t>(around.size()))];
      if (std::ranges::find(piece, other) == piece.end()) piece.push_back(other);
    }
    PatternParts parts{.name = "p"};
    for (std::size_t i = 0; i < piece.size(); ++i) add_node(graph, piece, i, parts);
    parts.outputs = sinks_of(parts.nodes);
    for (std::uint32_t i = 0; i < parts.nodes.size(); ++i) {
      if (chance(35)) parts.outputs.push_back({.node = i});
      if (chance(10)) parts.outputs.push_back({.node = i, .result = below(2), .is_whole_node = false});
    }
    parts.cost.base = 1 + below(4);
    return parts;
  }

 private:
  ValueId recent(const std::vector<ValueId>& values) {
    const auto size = static_cast<std::uint32_t>(values.size());
    return chance(60) ? values[size - 1 - below(std::min(size, 4U))] : values[below(size)];
  }

  void add_node(const Graph& graph, const std::vector<NodeId>& piece, std::size_t i, PatternParts& parts) {
    PatternNode node{.id = cat("n", i), .op = {.names = {graph.op_name(graph.op(piece[i]))}}};
    node.lists_inputs = chance(80);
    for (ValueId value : graph.inputs(piece[i])) {
      const auto at = std::ranges::find(piece, graph.producer(value));
      if (at != piece.end()) {
        node.inputs.push_back({PatternInput::Kind::node, static_cast<std::uint32_t>(at - piece.begin()),
                               graph.result_index(value)});
      } else if (chance(10)) {
        node.inputs.emplace_back();
      } else {
        node.inputs.push_back(external(graph.value_name(value), parts));
      }
    }
    if (!node.lists_inputs)
      while (!node.inputs.empty() && node.inputs.back().kind != PatternInput::Kind::node)
        node.inputs.pop_back();
    if (chance(25)) std::ranges::shuffle(node.inputs, random_);
    parts.nodes.push_back(std::move(node));
  }
  /// The external for a value: one for each, but sometimes a second name for it, or the name of another.
  PatternInput external(std::string name, PatternParts& parts) {
    if (chance(15)) name += "'";
    auto at = std::ranges::find(parts.externals, name, &PatternExternal::name);
    if (at == parts.externals.end() &&
        (parts.externals.size() >= 4 || (chance(10) && !parts.externals.empty())))
      at = parts.externals.begin();
    const auto index = static_cast<std::uint32_t>(at - parts.externals.begin());
    if (index == parts.externals.size()) parts.externals.push_back({.name = name});
    return {PatternInput::Kind::external, index, 0};
  }

  std::mt19937 random_;
};

/// What the matcher tells.
std::vector<BruteMatch> found_matches(const Graph& graph, const Pattern& pattern) {
  std::vector<BruteMatch> out;
  MatchSpace space(graph);
  const auto visit = [&](const Match& match) {
    out.push_back(
        {{match.images.begin(), match.images.end()}, {match.externals.begin(), match.externals.end()}});
    return true;
  };
  cover::Effort unlimited;
  EXPECT_EQ(find_matches(graph, pattern, pattern.variants()[0], space, visit, unlimited),
            SearchEnd::complete);
  return out;
}

TEST(MatcherLaw, FindsWhatTheDefinitionSaysOncePerSymmetry) {
  std::size_t total = 0;
  std::size_t symmetric = 0;
  for (std::uint32_t seed = 0; seed < fixture::repeats(20'000U); ++seed) {
    RandomTiling random(seed);
    const Graph graph = random.graph(9);
    const auto pattern = Pattern::create(random.pattern(graph, 4));
    if (!pattern) continue;  // a shuffled piece may be cyclic
    const std::set<BruteMatch> expected = brute_force_matches(graph, pattern->parts());
    std::set<BruteMatch> found;
    for (const BruteMatch& match : found_matches(graph, *pattern)) {
      const auto alike = symmetric_matches(graph, pattern->parts(), match);
      for (const BruteMatch& one : alike)
        EXPECT_TRUE(found.insert(one).second) << "seed " << seed << ": found twice";
      symmetric += alike.size() - 1;
      ++total;
    }
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
  EXPECT_GT(total, fixture::repeats(10'000U));
  EXPECT_GT(symmetric, fixture::repeats(1'000U));
}

/// A random tree of unary ops.
Graph random_tree(RandomTiling& random) {
  GraphBuilder builder(op::op_facts());
  std::vector<ValueId> values{builder.input("x")};
  for (std::uint32_t i = 2 + random.below(12); i > 0; --i) {
    static constexpr const char* ops[] = {"a", "b", "c"};
    const auto size = static_cast<std::uint32_t>(values.size());
    const ValueId from = values[random.chance(75) ? size - 1 : random.below(size)];
    values.push_back(builder.add(ops[random.below(3)], {from}));
  }
  builder.set_sinks_as_outputs();
  return value_or_throw(std::move(builder).build());
}

/// The sets of nodes that the patterns cover, each once for each match.
std::multiset<std::vector<NodeId>> covered_sets(const Graph& graph, const std::vector<std::string>& texts) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts)
    patterns.push_back(value_or_throw(parse_pattern_text(SourceText("pattern", text), text, op::op_facts())));
  CandidateList list;
  value_or_throw(PatternLibrary(std::move(patterns)).list(graph, list));
  std::multiset<std::vector<NodeId>> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.emplace(list.nodes(i).begin(), list.nodes(i).end());
  return out;
}

TEST(MatcherLaw, AnOptionalNodeIsBothPatterns) {
  std::size_t total = 0;
  for (std::uint32_t seed = 0; seed < fixture::repeats(2'000U); ++seed) {
    RandomTiling random(seed);
    const Graph graph = random_tree(random);
    const auto found = covered_sets(graph, {"1:a->2:b?->3:c|a"});
    EXPECT_EQ(found, covered_sets(graph, {"1:a->2:b->3:c|a", "1:a->3:c|a"})) << "seed " << seed;
    total += found.size();
  }
  EXPECT_GT(total, fixture::repeats(1'000U));
}

TEST(MatcherLaw, AChainIsAllItsLengths) {
  std::size_t total = 0;
  for (std::uint32_t seed = 0; seed < fixture::repeats(2'000U); ++seed) {
    RandomTiling random(seed);
    const Graph graph = random_tree(random);
    for (const bool is_first : {true, false}) {
      std::vector<std::string> lengths;
      std::string run;
      for (std::uint32_t length = 1; length < graph.node_count(); ++length) {
        run += cat(length == 1 ? "" : "->", "n", length, ":a|b");
        lengths.push_back(is_first ? cat(run, "->z:c") : cat("z:c->", run));
      }
      const auto found = covered_sets(graph, {is_first ? "n:a|b+->z:c" : "z:c->n:a|b+"});
      EXPECT_EQ(found, covered_sets(graph, lengths)) << "seed " << seed;
      total += found.size();
    }
  }
  EXPECT_GT(total, fixture::repeats(2'000U));
}

/// The cheapest tiling by the candidates of the brute-force matcher and the brute-force cover.
double least_cost(const Graph& graph, const std::vector<PatternParts>& library, Objective objective,
                  double uncovered) {
  cover::Problem problem{.node_count = graph.node_count()};
  for (NodeId node = 0; node < graph.node_count(); ++node)
    for (NodeId before : graph.predecessors(node)) problem.edges.push_back({before, node});
  for (const PatternParts& parts : library) {
    std::set<std::vector<NodeId>> sets;
    for (const BruteMatch& match : brute_force_matches(graph, parts)) {
      std::vector<NodeId> nodes = match.images;
      std::ranges::sort(nodes);
      sets.insert(nodes);
    }
    for (const auto& nodes : sets)
      problem.candidates.push_back({.nodes = {nodes.begin(), nodes.end()},
                                    .cost = objective == Objective::cost ? parts.cost.base : 1});
  }
  problem.uncovered_cost.assign(graph.node_count(), uncovered);
  return cover::brute_force_cost(problem);
}

/// Why the tiling is none: tiles overlap, or something runs before what it needs.
std::string explain_invalid(const Graph& graph, const Tiling& tiling) {
  std::vector<std::uint32_t> time(graph.node_count(), none);
  for (std::uint32_t step = 0; step < tiling.order.size(); ++step) {
    std::vector<NodeId> nodes{tiling.order[step].index};
    if (tiling.order[step].kind == TilingStep::Kind::tile)
      nodes.assign(tiling.tiles[tiling.order[step].index].nodes.begin(),
                   tiling.tiles[tiling.order[step].index].nodes.end());
    for (NodeId node : nodes)
      if (std::exchange(time[node], step) != none) return cat("node ", graph.id(node), " is covered twice");
  }
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (time[node] == none) return cat("node ", graph.id(node), " is missing");
    for (NodeId before : graph.predecessors(node))
      if (time[before] > time[node]) return cat("node ", graph.id(node), " runs too early");
  }
  return "";
}

TEST(TilerLaw, TheTilingCostsWhatTheBestCosts) {
  std::size_t tiles = 0;
  for (std::uint32_t seed = 0; seed < fixture::repeats(3'000U); ++seed) {
    RandomTiling random(seed);
    const Graph graph = random.graph(11);
    std::vector<PatternParts> library;
    std::vector<Pattern> patterns;
    for (std::uint32_t i = 1 + random.below(6); i > 0; --i) {
      PatternParts parts = random.pattern(graph, 4);
      auto pattern = Pattern::create(parts);
      if (!pattern) continue;
      library.push_back(std::move(parts));
      patterns.push_back(*std::move(pattern));
    }
    const Target target{.sources = {std::make_shared<PatternLibrary>(patterns)}};
    const double price = 1 + random.below(5);
    const Tiling by_cost = value_or_throw(tile(graph, target, {.uncovered_cost = price}));
    EXPECT_EQ(by_cost.cost, least_cost(graph, library, Objective::cost, price)) << "seed " << seed;
    EXPECT_EQ(explain_invalid(graph, by_cost), "") << "seed " << seed;
    const Tiling by_coverage = value_or_throw(tile(graph, target, {.objective = Objective::coverage}));
    EXPECT_EQ(by_coverage.cost, least_cost(graph, library, Objective::coverage, graph.node_count() + 1.0))
        << "seed " << seed;
    EXPECT_EQ(explain_invalid(graph, by_coverage), "") << "seed " << seed;
    EXPECT_TRUE(by_cost.optimal && by_coverage.optimal);
    tiles += by_cost.tiles.size();
  }
  EXPECT_GT(tiles, fixture::repeats(3'000U));
}

}  // namespace
