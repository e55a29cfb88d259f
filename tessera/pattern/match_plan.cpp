#include "tessera/pattern/match_plan.h"

#include <algorithm>
#include <queue>
#include <tuple>

using namespace tessera::pattern;

namespace {

using Kind = PatternInput::Kind;
using From = MatchStep::From;

class Planner {
 public:
  Planner(const Graph& graph, const Pattern& pattern, const Variant& variant)
      : graph_(graph), pattern_(pattern), variant_(variant), step_of_(variant.nodes.size(), none) {}

  std::optional<MatchPlan> run() {
    plan_.nodes.resize(variant_.nodes.size());
    for (std::uint32_t i = 0; i < variant_.nodes.size(); ++i)
      if (!find_ops(i)) return std::nullopt;
    find_uses();
    find_limits();
    order_steps();
    find_rules();
    list_externals();
    count_waiting();
    for (const PatternNode& node : variant_.nodes)
      for (const AttributeCondition& condition : node.attributes) note_capture(condition.value);
    for (const PatternExternal& external : pattern_.parts().externals) note_capture(external.value);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(variant_.nodes.size()); }
  void note_capture(const ValueCondition& condition) {
    plan_.has_captures = plan_.has_captures || !condition.capture.empty();
  }

  /// False if no node of the graph has one of the ops.
  bool find_ops(std::uint32_t i) {
    const OpCondition& condition = variant_.nodes[i].op;
    NodePlan& plan = plan_.nodes[i];
    plan.is_chain = variant_.nodes[i].repeat.most != 1;
    for (const std::string& name : condition.names)
      if (const OpId op = graph_.find_op(name); op != none && !graph_.nodes_of(op).empty())
        plan.ops.push_back(op);
    if (!condition.names.empty()) return !plan.ops.empty();
    plan.has_traits.assign(graph_.op_count(), false);
    for (OpId op = 0; op < graph_.op_count(); ++op)
      if (std::ranges::all_of(condition.traits,
                              [&](const std::string& t) { return graph_.has_trait(op, t); })) {
        plan.has_traits[op] = true;
        plan.ops.push_back(op);
      }
    return !plan.ops.empty();
  }

  void find_uses() {
    for (std::uint32_t i = 0; i < size(); ++i)
      for (std::uint32_t slot = 0; slot < variant_.nodes[i].inputs.size(); ++slot)
        if (const PatternInput& input = variant_.nodes[i].inputs[slot]; input.kind == Kind::node)
          plan_.nodes[input.index].uses.push_back({i, slot, input.result});
    for (const PatternOutput& output : variant_.outputs) {
      NodePlan& plan = plan_.nodes[output.node];
      plan.declares_all = plan.declares_all || output.is_whole_node;
      if (!output.is_whole_node) plan.declared.push_back(output.result);
    }
  }

  /// A result that is no output can have as many consumers as the pattern draws; where inputs are open, also
  /// others of its nodes.
  void find_limits() {
    const auto is_open = [](const PatternNode& node) { return !node.lists_inputs; };
    const auto is_chain = [](const NodePlan& plan) { return plan.is_chain; };
    const bool any_open = std::ranges::any_of(variant_.nodes, is_open);
    const bool any_chain = std::ranges::any_of(plan_.nodes, is_chain);
    for (NodePlan& plan : plan_.nodes) {
      if (any_open) {
        plan.consumer_limit = {any_chain ? none : size() - 1};
        continue;
      }
      std::uint32_t results = 0;
      for (const PatternUse& use : plan.uses) results = std::max(results, use.result + 1);
      plan.consumer_limit.assign(results + 1, 0);
      std::vector<std::pair<std::uint32_t, std::uint32_t>> takers;
      for (const PatternUse& use : plan.uses) takers.emplace_back(use.result, use.node);
      std::ranges::sort(takers);
      takers.erase(std::unique(takers.begin(), takers.end()), takers.end());
      for (const auto& [result, node] : takers) ++plan.consumer_limit[result];
    }
  }

  [[nodiscard]] bool is_surely_commutative(std::uint32_t i) const {
    const auto& ops = plan_.nodes[i].ops;
    return !plan_.nodes[i].is_chain &&
           std::ranges::all_of(ops, [&](OpId op) { return graph_.is_commutative(op); });
  }
  [[nodiscard]] bool is_surely_ordered(std::uint32_t i) const {
    const auto& ops = plan_.nodes[i].ops;
    return !plan_.nodes[i].is_chain &&
           std::ranges::none_of(ops, [&](OpId op) { return graph_.is_commutative(op); });
  }

  void find_rules() {
    if (pattern_.parts().cost.compute != nullptr || pattern_.parts().where != nullptr) return;
    std::vector<bool> is_commutative;
    for (std::uint32_t i = 0; i < size(); ++i) is_commutative.push_back(is_surely_commutative(i));
    Symmetries found = find_symmetries(variant_, pattern_.parts().externals, is_commutative, step_of_);
    plan_.external_rules = std::move(found.externals);
    equal_externals_ = std::move(found.equal_externals);
    for (const OrderRule& rule : found.nodes) {
      plan_.nodes[rule.smaller].rules.push_back(rule);
      plan_.nodes[rule.larger].rules.push_back(rule);
    }
  }

  void list_externals() {
    std::vector<bool> is_grouped(pattern_.parts().externals.size(), false);
    std::vector<std::uint32_t> taker(is_grouped.size(), none);  // of externals in one slot only
    for (std::uint32_t i = 0; i < size(); ++i)
      for (const PatternInput& input : variant_.nodes[i].inputs)
        if (input.kind == Kind::external) taker[input.index] = i;
    for (const auto& group : equal_externals_)
      for (std::size_t k = 0; k < group.size(); ++k) {
        is_grouped[group[k]] = true;
        const auto left = static_cast<std::uint32_t>(group.size() - k - 1);
        plan_.nodes[taker[group[k]]].externals.push_back({group[k], k > 0, left});
      }
    for (std::uint32_t i = 0; i < size(); ++i)
      for (const PatternInput& input : variant_.nodes[i].inputs)
        if (input.kind == Kind::external && !is_grouped[input.index])
          plan_.nodes[i].externals.push_back({input.index});
  }

  void find_rarity() {
    for (const NodePlan& plan : plan_.nodes) {
      std::size_t count = plan.is_chain ? graph_.node_count() : 0;  // a chain is the worst place to begin
      for (OpId op : plan.ops) count += graph_.nodes_of(op).size();
      rarity_.push_back(count);
    }
  }

  /// A step that has become possible; the smallest comes first.
  struct Option {
    std::tuple<int, std::size_t, std::uint32_t> key;
    MatchStep step;
    bool operator>(const Option& other) const { return key > other.key; }
  };
  void offer(MatchStep step, int possibilities) {
    if (step_of_[step.node] != none) return;
    if (plan_.nodes[step.node].is_chain) possibilities += 3;
    options_.push({{possibilities, rarity_[step.node], step.node}, step});
  }
  void take(const MatchStep& step) {
    const std::uint32_t i = step.node;
    step_of_[i] = static_cast<std::uint32_t>(plan_.steps.size());
    plan_.steps.push_back(step);
    const auto& inputs = variant_.nodes[i].inputs;
    for (std::uint32_t slot = 0; slot < inputs.size(); ++slot)
      if (inputs[slot].kind == Kind::node)
        offer({inputs[slot].index, From::consumer, i, slot, inputs[slot].result},
              is_surely_ordered(i) ? 0 : 1);
    for (const PatternUse& use : plan_.nodes[i].uses)
      offer({use.node, From::producer, i, use.slot, use.result}, 2);
  }

  void order_steps() {
    find_rarity();
    const auto root = static_cast<std::uint32_t>(std::ranges::min_element(rarity_) - rarity_.begin());
    for (OpId op : plan_.nodes[root].ops) {
      const auto nodes = graph_.nodes_of(op);
      plan_.roots.insert(plan_.roots.end(), nodes.begin(), nodes.end());
    }
    std::ranges::sort(plan_.roots);
    take({.node = root});
    while (!options_.empty()) {
      const MatchStep step = options_.top().step;
      options_.pop();
      if (step_of_[step.node] == none) take(step);
    }
  }

  /// Whether node i hangs on the step's neighbour the way the step's node does.
  [[nodiscard]] bool hangs_alike(std::uint32_t i, const MatchStep& step) const {
    if (step.from == From::producer) {
      const auto& uses = plan_.nodes[step.neighbour].uses;
      return std::ranges::any_of(
          uses, [&](const PatternUse& use) { return use.node == i && use.result == step.result; });
    }
    return std::ranges::any_of(variant_.nodes[step.neighbour].inputs, [&](const PatternInput& input) {
      return input.kind == Kind::node && input.index == i;
    });
  }
  void count_waiting() {
    for (std::uint32_t k = 1; k < plan_.steps.size(); ++k) {
      MatchStep& step = plan_.steps[k];
      if (plan_.nodes[step.node].rules.empty()) continue;
      step.larger_waiting = count_waiting(k, &OrderRule::smaller, &OrderRule::larger);
      step.smaller_waiting = count_waiting(k, &OrderRule::larger, &OrderRule::smaller);
    }
  }
  /// The nodes to which rules lead from that of step k, which come later and hang on the same neighbour.
  [[nodiscard]] std::uint32_t count_waiting(std::uint32_t k, std::uint32_t OrderRule::*from,
                                            std::uint32_t OrderRule::*to) const {
    const MatchStep& step = plan_.steps[k];
    std::vector<bool> is_seen(size(), false);
    std::vector<std::uint32_t> reached{step.node};
    std::uint32_t count = 0;
    for (std::size_t at = 0; at < reached.size(); ++at)
      for (const OrderRule& rule : plan_.nodes[reached[at]].rules) {
        const std::uint32_t other = rule.*to;
        if (rule.*from != reached[at] || is_seen[other]) continue;
        is_seen[other] = true;
        reached.push_back(other);
        if (step_of_[other] > k && hangs_alike(other, step)) ++count;
      }
    return count;
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const Variant& variant_;
  MatchPlan plan_;
  std::vector<std::vector<std::uint32_t>> equal_externals_;
  std::vector<std::uint32_t> step_of_;  ///< by node
  std::vector<std::size_t> rarity_;     ///< by node: how many nodes of the graph have its ops
  std::priority_queue<Option, std::vector<Option>, std::greater<>> options_;
};

}  // namespace

bool NodePlan::admits(OpId op) const {
  return has_traits.empty() ? std::ranges::find(ops, op) != ops.end() : has_traits[op];
}

bool NodePlan::declares(std::uint32_t result) const {
  return declares_all || std::ranges::find(declared, result) != declared.end();
}

std::optional<MatchPlan> tessera::pattern::plan_match(const Graph& graph, const Pattern& pattern,
                                                      const Variant& variant) {
  return Planner(graph, pattern, variant).run();
}
