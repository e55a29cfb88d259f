#include "tessera/pattern/matcher.h"

#include <algorithm>
#include <cmath>

#include "tessera/pattern/chain_options.h"
#include "tessera/pattern/external_binding.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Kind = PatternInput::Kind;
using From = MatchStep::From;

/// Steps between two questions whether the effort is over; what a step takes, and a look of the question
/// whether a match is convex.
constexpr std::uint64_t steps_between_questions = 64;
constexpr std::uint64_t step_work = 15;
constexpr std::uint64_t convexity_look_work = 4;

/// A search may take so many steps, and so many for each node of the graph. What needs more is a puzzle, not
/// a pattern: matching is as hard as finding subgraphs.
constexpr std::uint64_t match_step_limit = 10'000'000;
constexpr std::uint64_t steps_per_node = 1000;

/// Matches over the same nodes in a row that are told, where they all cost the same.
constexpr std::uint32_t same_nodes_limit = 64;

/// The nodes of all chains that begin anywhere in a run of n ops and have at most k of them are n * k * k / 2
/// in number; k is chosen to keep that below this.
constexpr double chain_work = 4e6;
/// Chains beyond that length may have so many nodes in all, and so many for each node of the graph.
constexpr std::uint64_t long_chain_nodes = 100'000;
constexpr std::uint64_t long_chain_share = 4;

/// Backtracking over the steps of a plan, without recursion.
class Search {
 public:
  Search(const Graph& graph, const Pattern& pattern, const Variant& variant, const MatchPlan& plan,
         MatchSpace& space, const MatchVisitor& visit, cover::Effort& effort)
      : graph_(graph),
        pattern_(pattern),
        variant_(variant),
        plan_(plan),
        space_(space),
        visit_(visit),
        effort_(effort),
        images_(variant.nodes.size(), none),
        heads_(variant.nodes.size(), none),
        chains_(variant.nodes.size()),
        cursors_(plan.steps.size()),
        externals_(graph, pattern, variant, plan, space.owner),
        full_length_(longest_full_chain(graph)),
        long_nodes_left_(long_chain_nodes + long_chain_share * graph.node_count()),
        steps_left_(match_step_limit + steps_per_node * graph.node_count()),
        counted_looks_(space.convexity.looks()),
        tells_bindings_apart_(pattern.parts().cost.compute != nullptr || pattern.parts().where != nullptr) {}

  SearchEnd run() {
    std::size_t depth = 0;
    while (goes_on()) {
      if (depth == plan_.steps.size()) report();
      if (depth < plan_.steps.size() && advance(depth)) {
        if (++depth < plan_.steps.size()) cursors_[depth].reset();
        continue;
      }
      if (depth == 0) break;
      unbind(plan_.steps[--depth].node);
    }
    while (depth > 0) unbind(plan_.steps[--depth].node);
    if (goes_on() && misses_chains_) return SearchEnd::chains_missing;
    return end_;
  }

 private:
  /// Where a step stands among its possibilities.
  struct Cursor {
    std::uint32_t index = 0;
    std::uint32_t option = 0;  ///< of a chain, among those at the last possibility
    std::vector<ChainOption> options = {};

    void reset() {
      index = 0;
      option = 0;
      options.clear();
    }
  };

  [[nodiscard]] bool goes_on() const { return end_ == SearchEnd::complete; }
  /// Counts a step. False if the search must end.
  bool take_step() {
    if (--steps_left_ == 0)
      end_ = SearchEnd::gave_up;
    else if (steps_left_ % steps_between_questions == 0 && is_over())
      end_ = SearchEnd::stopped;
    return goes_on();
  }
  bool is_over() {
    const std::uint64_t looks = space_.convexity.looks();
    effort_.spend(step_work * steps_between_questions + convexity_look_work * (looks - counted_looks_));
    counted_looks_ = looks;
    return effort_.is_over();
  }

  [[nodiscard]] bool is_commutative(std::uint32_t i) const {
    return graph_.is_commutative(graph_.op(images_[i])) && !plan_.nodes[i].is_chain;
  }
  [[nodiscard]] bool is_owned(NodeId node) const { return space_.owner[node] != 0; }

  /// Binds the step's node to its next possibility that fits. False if there is none left.
  bool advance(std::size_t depth) {
    const MatchStep& step = plan_.steps[depth];
    Cursor& cursor = cursors_[depth];
    if (plan_.nodes[step.node].is_chain) return advance_chain(step, cursor);
    for (NodeId node = next_node(step, cursor); node != none && take_step(); node = next_node(step, cursor))
      if (fits(step.node, node) && has_room(step, node) && bind(step.node, node)) return true;
    return false;
  }

  bool advance_chain(const MatchStep& step, Cursor& cursor) {
    for (;;) {
      for (; cursor.option < cursor.options.size(); ++cursor.option) {
        const ChainOption& option = cursor.options[cursor.option];
        const bool is_left_out = option.length > full_length_ && option.goes_on;
        misses_chains_ = misses_chains_ || is_left_out;
        if (!take_step()) return false;
        if (!is_left_out && bind_chain(step.node, cursor)) return ++cursor.option, true;
      }
      const NodeId node = next_node(step, cursor);
      if (node == none) return false;
      list_chains(step, node, cursor);
    }
  }
  void list_chains(const MatchStep& step, NodeId node, Cursor& cursor) {
    cursor.option = 0;
    cursor.options.clear();
    const auto may_be_in = [&](NodeId other) { return fits_chain(step.node, other); };
    std::uint32_t most = variant_.nodes[step.node].repeat.most;
    if (long_nodes_left_ == 0) most = std::min(most, full_length_);
    if (step.from == From::producer)
      list_chains_ahead(graph_, node, most, may_be_in, cursor.options);
    else
      list_chains_back(graph_, node, most, may_be_in, cursor.options);
    const auto is_cut = [&](const ChainOption& option) { return option.length == most; };
    const bool was_cut = most < variant_.nodes[step.node].repeat.most;
    misses_chains_ = misses_chains_ || (was_cut && std::ranges::any_of(cursor.options, is_cut));
    for (const ChainOption& option : cursor.options)
      if (option.length > full_length_) long_nodes_left_ -= std::min<std::uint64_t>(long_nodes_left_, 1);
  }

  NodeId next_node(const MatchStep& step, Cursor& cursor) const {
    switch (step.from) {
      case From::all:
        return cursor.index < plan_.roots.size() ? plan_.roots[cursor.index++] : none;
      case From::producer: {
        const auto consumers = consumers_at(step);
        return cursor.index < consumers.size() ? consumers[cursor.index++] : none;
      }
      case From::consumer:
        return next_producer(step, cursor);
    }
    return none;
  }
  /// Who takes the result that the step follows.
  [[nodiscard]] std::span<const NodeId> consumers_at(const MatchStep& step) const {
    const NodeId node = images_[step.neighbour];
    if (step.result >= graph_.result_count(node)) return {};
    return graph_.consumers(graph_.result(node, step.result));
  }
  NodeId next_producer(const MatchStep& step, Cursor& cursor) const {
    const bool any_slot = plan_.nodes[step.neighbour].is_chain || is_commutative(step.neighbour);
    const NodeId consumer =
        plan_.nodes[step.neighbour].is_chain ? heads_[step.neighbour] : images_[step.neighbour];
    const auto inputs = graph_.inputs(consumer);
    if (!any_slot) {
      if (cursor.index++ > 0) return none;
      return step.slot < inputs.size() ? producer_of(inputs[step.slot], step.result) : none;
    }
    while (cursor.index < inputs.size()) {
      const std::uint32_t slot = cursor.index++;
      const NodeId node = producer_of(inputs[slot], step.result);
      const auto earlier = inputs.first(slot);
      if (node != none && !is_owned(node) && std::ranges::find(earlier, inputs[slot]) == earlier.end())
        return node;
    }
    return none;
  }
  [[nodiscard]] NodeId producer_of(ValueId value, std::uint32_t result) const {
    return graph_.result_index(value) == result ? graph_.producer(value) : none;
  }

  /// Whether the node by itself can be the image of i.
  [[nodiscard]] bool fits(std::uint32_t i, NodeId node) const {
    const PatternNode& wanted = variant_.nodes[i];
    if (is_owned(node) || graph_.is_opaque(node) || !plan_.nodes[i].admits(graph_.op(node))) return false;
    const std::size_t inputs = graph_.inputs(node).size();
    if (wanted.lists_inputs ? inputs != wanted.inputs.size() : inputs < wanted.inputs.size()) return false;
    return has_attributes(wanted, node) && has_dtype(wanted, node) && may_keep_results(i, node);
  }
  [[nodiscard]] bool fits_chain(std::uint32_t i, NodeId node) const {
    const PatternNode& wanted = variant_.nodes[i];
    return !is_owned(node) && !graph_.is_opaque(node) && plan_.nodes[i].admits(graph_.op(node)) &&
           has_attributes(wanted, node) && has_dtype(wanted, node);
  }
  [[nodiscard]] bool has_attributes(const PatternNode& wanted, NodeId node) const {
    if (!wanted.lists_attributes && wanted.attributes.empty()) return true;
    const Attributes& attributes = graph_.attributes(node);
    const auto holds = [&](const AttributeCondition& condition) { return condition.holds(attributes); };
    if (!std::ranges::all_of(wanted.attributes, holds)) return false;
    const auto is_listed = [&](const Attributes::Entry& entry) {
      return std::ranges::find(wanted.attributes, entry.first, &AttributeCondition::name) !=
             wanted.attributes.end();
    };
    return !wanted.lists_attributes || std::ranges::all_of(attributes.entries(), is_listed);
  }
  [[nodiscard]] bool has_dtype(const PatternNode& wanted, NodeId node) const {
    if (wanted.dtypes.empty()) return true;
    if (graph_.result_count(node) == 0) return false;
    const auto dtype = graph_.type(graph_.result(node)).dtype;
    return dtype && std::ranges::find(wanted.dtypes, *dtype) != wanted.dtypes.end();
  }
  /// False if a result that is no output surely escapes: too many take it.
  [[nodiscard]] bool may_keep_results(std::uint32_t i, NodeId node) const {
    const NodePlan& plan = plan_.nodes[i];
    if (plan.declares_all) return true;
    for (std::uint32_t k = 0; k < graph_.result_count(node); ++k) {
      if (plan.declares(k)) continue;
      const ValueId value = graph_.result(node, k);
      const std::size_t place = std::min<std::size_t>(k, plan.consumer_limit.size() - 1);
      if (graph_.is_output(value) || graph_.consumers(value).size() > plan.consumer_limit[place])
        return false;
    }
    return true;
  }
  /// Whether enough larger and smaller nodes are left for those that the order rules will ask for.
  [[nodiscard]] bool has_room(const MatchStep& step, NodeId node) const {
    if (step.larger_waiting == 0 && step.smaller_waiting == 0) return true;
    std::uint32_t larger = 0;
    std::uint32_t smaller = 0;
    const auto count = [&](NodeId other) {
      if (other != none && !is_owned(other)) ++(other > node ? larger : smaller);
    };
    if (step.from == From::producer) {
      for (NodeId other : consumers_at(step)) count(other);
    } else {
      if (!is_commutative(step.neighbour)) return true;
      for (ValueId value : graph_.inputs(images_[step.neighbour])) count(graph_.producer(value));
    }
    return larger >= step.larger_waiting && smaller >= step.smaller_waiting;
  }

  bool bind(std::uint32_t i, NodeId node) {
    images_[i] = node;
    space_.owner[node] = i + 1;
    if (agrees(i) && (is_commutative(i) || externals_.bind_slots(i, node))) return true;
    unbind(i);
    return false;
  }
  bool bind_chain(std::uint32_t i, const Cursor& cursor) {
    const ChainOption& option = cursor.options[cursor.option];
    if (option.length < variant_.nodes[i].repeat.least) return false;
    chains_[i].clear();
    const bool is_ahead = cursor.options[0].is_ahead;
    for (std::uint32_t at = cursor.option; at != none; at = cursor.options[at].parent)
      chains_[i].push_back(cursor.options[at].node);
    if (is_ahead) std::ranges::reverse(chains_[i]);
    images_[i] = chains_[i].back();
    heads_[i] = chains_[i].front();
    for (NodeId node : chains_[i]) space_.owner[node] = i + 1;
    if (may_keep_results(i, images_[i]) && agrees(i)) return true;
    unbind(i);
    return false;
  }
  void unbind(std::uint32_t i) {
    externals_.release(i);
    if (plan_.nodes[i].is_chain) {
      for (NodeId node : chains_[i]) space_.owner[node] = 0;
      chains_[i].clear();
    } else {
      space_.owner[images_[i]] = 0;
    }
    images_[i] = none;
  }

  /// Whether the edges between i and what is bound already are there, and the order rules hold.
  [[nodiscard]] bool agrees(std::uint32_t i) const {
    for (std::uint32_t slot = 0; slot < variant_.nodes[i].inputs.size(); ++slot) {
      const PatternInput& input = variant_.nodes[i].inputs[slot];
      if (input.kind == Kind::node && images_[input.index] != none &&
          !has_edge(input.index, {i, slot, input.result}))
        return false;
    }
    for (const PatternUse& use : plan_.nodes[i].uses)
      if (images_[use.node] != none && !has_edge(i, use)) return false;
    for (const OrderRule& rule : plan_.nodes[i].rules)
      if (images_[rule.smaller] != none && images_[rule.larger] != none &&
          images_[rule.smaller] > images_[rule.larger])
        return false;
    return true;
  }
  /// Whether the graph has the edge from the image of `from` to where `use` takes it.
  [[nodiscard]] bool has_edge(std::uint32_t from, const PatternUse& use) const {
    if (use.result >= graph_.result_count(images_[from])) return false;
    const ValueId value = graph_.result(images_[from], use.result);
    if (plan_.nodes[use.node].is_chain) return std::ranges::count(graph_.inputs(heads_[use.node]), value) > 0;
    const auto inputs = graph_.inputs(images_[use.node]);
    if (!is_commutative(use.node)) return inputs[use.slot] == value;
    const PatternNode& taker = variant_.nodes[use.node];
    const auto wanted = std::ranges::count(taker.inputs, PatternInput{Kind::node, from, use.result});
    const auto found = std::ranges::count(inputs, value);
    return taker.lists_inputs ? found == wanted : found >= wanted;
  }

  /// All nodes are bound: checks what concerns the whole, and tells of each way to bind the externals.
  void report() {
    if (!keeps_results() || !reads_from_outside() || !collect_nodes()) return;
    if (nodes_ != told_nodes_) told_ = 0;
    if (told_ == same_nodes_limit) return;
    told_nodes_ = nodes_;
    const auto tell = [&](std::span<const ValueId> externals) {
      if (plan_.has_captures && !captures_agree(externals)) return true;
      if (!visit_({nodes_, images_, chains_, externals})) end_ = SearchEnd::stopped;
      if (!tells_bindings_apart_) ++told_;
      return goes_on() && told_ < same_nodes_limit;
    };
    externals_.for_each_binding(images_, tell, [&] { return !take_step(); });
  }

  /// Whether every result that escapes is declared as an output.
  [[nodiscard]] bool keeps_results() const {
    for (std::uint32_t i = 0; i < images_.size(); ++i) {
      if (!plan_.nodes[i].declares_all && !keeps_results_of(images_[i], &plan_.nodes[i])) return false;
      for (NodeId node : chains_[i])
        if (node != images_[i] && !keeps_results_of(node, nullptr)) return false;
    }
    return true;
  }
  [[nodiscard]] bool keeps_results_of(NodeId node, const NodePlan* plan) const {
    for (std::uint32_t k = 0; k < graph_.result_count(node); ++k) {
      const ValueId value = graph_.result(node, k);
      if (plan != nullptr && plan->declares(k)) continue;
      if (graph_.is_output(value)) return false;
      if (!std::ranges::all_of(graph_.consumers(value), [&](NodeId other) { return is_owned(other); }))
        return false;
    }
    return true;
  }

  /// Whether what no edge of the pattern explains comes from outside the match: reads that are no inputs, and
  /// the further inputs of a chain.
  [[nodiscard]] bool reads_from_outside() const {
    for (std::uint32_t i = 0; i < images_.size(); ++i) {
      if (!plan_.nodes[i].is_chain) {
        if (!are_outside(graph_.reads(images_[i]), none)) return false;
        continue;
      }
      ValueId link = none;
      if (const auto& inputs = variant_.nodes[i].inputs; !inputs.empty())
        link = graph_.result(images_[inputs[0].index], inputs[0].result);
      for (NodeId node : chains_[i]) {
        if (!are_outside(graph_.reads(node), none) || !are_outside(graph_.inputs(node), link)) return false;
        link = graph_.result(node);
      }
    }
    return true;
  }
  [[nodiscard]] bool are_outside(std::span<const ValueId> values, ValueId except) const {
    return std::ranges::all_of(values, [&](ValueId value) {
      return value == except || graph_.producer(value) == none || !is_owned(graph_.producer(value));
    });
  }

  /// Lists the nodes; false if they are not convex.
  bool collect_nodes() {
    nodes_.clear();
    for (std::uint32_t i = 0; i < images_.size(); ++i) {
      if (plan_.nodes[i].is_chain)
        nodes_.insert(nodes_.end(), chains_[i].begin(), chains_[i].end());
      else
        nodes_.push_back(images_[i]);
    }
    std::ranges::sort(nodes_);
    return space_.convexity.is_convex(nodes_);
  }

  [[nodiscard]] bool captures_agree(std::span<const ValueId> externals) const {
    const auto captures = captures_of(graph_, pattern_, variant_, images_, externals);
    for (std::size_t i = 0; i < captures.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (captures[i].name == captures[j].name && !same_value(captures[i].value, captures[j].value))
          return false;
    return true;
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const Variant& variant_;
  const MatchPlan& plan_;
  MatchSpace& space_;
  const MatchVisitor& visit_;
  cover::Effort& effort_;
  std::vector<NodeId> images_;  ///< by node of the variant; of a chain the last
  std::vector<NodeId> heads_;   ///< of chains
  std::vector<std::vector<NodeId>> chains_;
  std::vector<Cursor> cursors_;
  ExternalBinding externals_;
  std::vector<NodeId> nodes_;
  std::vector<NodeId>
      told_nodes_;  ///< of the last match that was told, and how many were told of them in a row
  std::uint32_t told_ = 0;
  std::uint32_t full_length_;
  std::uint64_t long_nodes_left_;
  bool misses_chains_ = false;
  std::uint64_t steps_left_;
  std::uint64_t counted_looks_;  ///< that the effort knows of
  bool tells_bindings_apart_;  ///< those that bind the externals otherwise may be no match or cost otherwise
  SearchEnd end_ = SearchEnd::complete;
};

}  // namespace

SearchEnd tessera::pattern::find_matches(const Graph& graph, const Pattern& pattern, const Variant& variant,
                                         MatchSpace& space, const MatchVisitor& visit,
                                         cover::Effort& effort) {
  const auto plan = plan_match(graph, pattern, variant);
  if (!plan) return SearchEnd::complete;
  return Search(graph, pattern, variant, *plan, space, visit, effort).run();
}

std::uint32_t tessera::pattern::longest_full_chain(const Graph& graph) {
  const double length = std::sqrt(2 * chain_work / std::max(graph.node_count(), 1U));
  return std::max(16U, static_cast<std::uint32_t>(std::min(length, 1e9)));
}

std::vector<Capture> tessera::pattern::captures_of(const Graph& graph, const Pattern& pattern,
                                                   const Variant& variant, std::span<const NodeId> images,
                                                   std::span<const ValueId> externals) {
  std::vector<Capture> out;
  for (std::uint32_t i = 0; i < variant.nodes.size(); ++i)
    for (const AttributeCondition& condition : variant.nodes[i].attributes) {
      const AttributeValue* value = graph.attributes(images[i]).find(condition.name);
      if (!condition.value.capture.empty() && value != nullptr)
        out.push_back({condition.value.capture, *value});
    }
  for (std::size_t i = 0; i < externals.size(); ++i) {
    const ValueCondition& condition = pattern.parts().externals[i].value;
    if (condition.capture.empty() || externals[i] == none) continue;
    if (const auto& constant = graph.external(externals[i]).constant)
      out.push_back({condition.capture, *constant});
  }
  return out;
}
