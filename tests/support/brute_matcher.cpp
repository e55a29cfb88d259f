#include "tests/support/brute_matcher.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace tessera::pattern;
using namespace tessera::test;

namespace {

using Kind = PatternInput::Kind;

class BruteMatcher {
 public:
  BruteMatcher(const Graph& graph, const PatternParts& parts) : graph_(graph), parts_(parts) {
    find_paths();
    match_.images.assign(parts.nodes.size(), none);
    match_.externals.assign(parts.externals.size(), none);
  }

  std::set<BruteMatch> run() {
    map_node(0);
    return std::move(found_);
  }

 private:
  void find_paths() {
    leads_.assign(graph_.node_count(), std::vector<bool>(graph_.node_count(), false));
    for (NodeId node : graph_.order())
      for (NodeId before : graph_.predecessors(node)) {
        leads_[before][node] = true;
        for (NodeId first = 0; first < graph_.node_count(); ++first)
          if (leads_[first][before]) leads_[first][node] = true;
      }
  }

  void map_node(std::size_t i) {
    if (i == parts_.nodes.size()) {
      if (is_convex() && escapes_are_declared()) bind_inputs(0);
      return;
    }
    for (NodeId node = 0; node < graph_.node_count(); ++node) {
      const bool is_taken = std::ranges::find(match_.images, node) != match_.images.end();
      if (is_taken || graph_.op_name(graph_.op(node)) != parts_.nodes[i].op.names[0]) continue;
      match_.images[i] = node;
      map_node(i + 1);
      match_.images[i] = none;
    }
  }

  [[nodiscard]] bool is_inside(NodeId node) const {
    return node != none && std::ranges::find(match_.images, node) != match_.images.end();
  }
  [[nodiscard]] bool is_convex() const {
    for (NodeId a : match_.images)
      for (NodeId b : match_.images)
        for (NodeId between = 0; between < graph_.node_count(); ++between)
          if (!is_inside(between) && leads_[a][between] && leads_[between][b]) return false;
    return true;
  }
  [[nodiscard]] bool escapes_are_declared() const {
    for (std::uint32_t i = 0; i < parts_.nodes.size(); ++i)
      for (std::uint32_t k = 0; k < graph_.result_count(match_.images[i]); ++k) {
        const ValueId value = graph_.result(match_.images[i], k);
        bool escapes = graph_.is_output(value);
        for (NodeId node = 0; node < graph_.node_count(); ++node) {
          const auto inputs = graph_.inputs(node);
          escapes = escapes || (!is_inside(node) && std::ranges::find(inputs, value) != inputs.end());
        }
        const auto declares = [&](const PatternOutput& output) {
          return output.node == i && (output.is_whole_node || output.result == k);
        };
        if (escapes && std::ranges::none_of(parts_.outputs, declares)) return false;
      }
    return true;
  }

  /// Gives the slots of pattern node i inputs of its image: in order, or in every order if it is commutative.
  void bind_inputs(std::size_t i) {
    if (i == parts_.nodes.size()) {
      found_.insert(match_);
      return;
    }
    const std::size_t wanted = parts_.nodes[i].inputs.size();
    const std::size_t given = graph_.inputs(match_.images[i]).size();
    if (parts_.nodes[i].lists_inputs ? wanted != given : wanted > given) return;
    std::vector<std::size_t> places(given);
    std::iota(places.begin(), places.end(), 0U);
    const bool permutes = graph_.is_commutative(graph_.op(match_.images[i]));
    do {
      const auto before = match_.externals;
      if (slots_agree(i, places)) bind_inputs(i + 1);
      match_.externals = before;
    } while (permutes && std::ranges::next_permutation(places).found);
  }
  bool slots_agree(std::size_t i, const std::vector<std::size_t>& places) {
    const auto inputs = graph_.inputs(match_.images[i]);
    for (std::size_t slot = 0; slot < parts_.nodes[i].inputs.size(); ++slot) {
      const PatternInput& wanted = parts_.nodes[i].inputs[slot];
      const ValueId value = inputs[places[slot]];
      if (wanted.kind == Kind::node) {
        if (graph_.producer(value) != match_.images[wanted.index] ||
            graph_.result_index(value) != wanted.result)
          return false;
        continue;
      }
      if (is_inside(graph_.producer(value))) return false;
      if (wanted.kind == Kind::any) continue;
      ValueId& bound = match_.externals[wanted.index];
      if (bound != none && bound != value) return false;
      bound = value;
    }
    return true;
  }

  const Graph& graph_;
  const PatternParts& parts_;
  std::vector<std::vector<bool>> leads_;  ///< by two nodes: a path leads from the first to the second
  BruteMatch match_;
  std::set<BruteMatch> found_;
};

/// Whether the permutations map the pattern onto itself.
bool is_symmetry(const Graph& graph, const PatternParts& parts, const std::vector<std::uint32_t>& nodes,
                 const std::vector<std::uint32_t>& externals) {
  const auto moved = [&](PatternInput input) {
    if (input.kind == Kind::node) input.index = nodes[input.index];
    if (input.kind == Kind::external) input.index = externals[input.index];
    return input;
  };
  const auto key = [](const PatternInput& input) {
    return std::tuple(input.kind, input.index, input.result);
  };
  for (std::uint32_t i = 0; i < parts.nodes.size(); ++i) {
    const PatternNode& from = parts.nodes[i];
    const PatternNode& to = parts.nodes[nodes[i]];
    if (from.op != to.op || from.lists_inputs != to.lists_inputs || from.inputs.size() != to.inputs.size())
      return false;
    std::vector<PatternInput> a, b = to.inputs;
    for (const PatternInput& input : from.inputs) a.push_back(moved(input));
    const OpId op = graph.find_op(from.op.names[0]);
    if (op != none && graph.is_commutative(op)) {
      std::ranges::sort(a, {}, key);
      std::ranges::sort(b, {}, key);
    }
    if (a != b) return false;
  }
  for (PatternOutput output : parts.outputs) {
    output.node = nodes[output.node];
    if (std::ranges::find(parts.outputs, output) == parts.outputs.end()) return false;
  }
  return true;
}

}  // namespace

std::set<BruteMatch> tessera::test::brute_force_matches(const Graph& graph, const PatternParts& parts) {
  return BruteMatcher(graph, parts).run();
}

std::set<BruteMatch> tessera::test::symmetric_matches(const Graph& graph, const PatternParts& parts,
                                                      const BruteMatch& match) {
  std::set<BruteMatch> out;
  std::vector<std::uint32_t> nodes(parts.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  do {
    std::vector<std::uint32_t> externals(parts.externals.size());
    std::iota(externals.begin(), externals.end(), 0U);
    do {
      if (!is_symmetry(graph, parts, nodes, externals)) continue;
      BruteMatch other = match;
      for (std::size_t i = 0; i < nodes.size(); ++i) other.images[nodes[i]] = match.images[i];
      for (std::size_t i = 0; i < externals.size(); ++i) other.externals[externals[i]] = match.externals[i];
      out.insert(std::move(other));
    } while (std::ranges::next_permutation(externals).found);
  } while (std::ranges::next_permutation(nodes).found);
  return out;
}
