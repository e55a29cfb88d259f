#include "tessera/describe/program_order.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/describe/scope_order.h"

using namespace tessera;
using namespace tessera::description;

namespace {

class Orderer {
 public:
  Orderer(const Graph& graph, Report& report)
      : graph_(graph),
        report_(report),
        scopes_(buffer_scopes(graph)),
        items_(graph.scopes.size()),
        branch_uses_(graph.scopes.size()) {}

  std::vector<Sequence> run() {
    check_homes(graph_, report_);
    place_items();
    place_orders();
    std::vector<Sequence> out(graph_.scopes.size());
    for (std::uint32_t scope : deepest_first(graph_)) {
      OrderedScope ordered = order_scope(graph_, with_uses(scope), scopes_, report_);
      out[scope] = std::move(ordered.sequence);
      branch_uses_[scope] = std::move(ordered.uses);
    }
    return out;
  }

 private:
  /// A region stands where its first node does.
  void place_items() {
    std::vector<std::uint32_t> rank(graph_.region_scope.size(), no_index);
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node)
      for (std::uint32_t scope = graph_.nodes[node].scope; scope != 0; scope = graph_.scopes[scope].parent) {
        std::uint32_t& first = rank[graph_.scopes[scope].region];
        if (first != no_index) break;
        first = node;
      }
    std::vector<std::uint32_t> regions(rank.size());
    for (std::uint32_t i = 0; i < regions.size(); ++i) regions[i] = i;
    std::stable_sort(regions.begin(), regions.end(), [&](auto a, auto b) { return rank[a] < rank[b]; });
    std::size_t next = 0;
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      for (; next < regions.size() && rank[regions[next]] <= node; ++next) add_region(regions[next]);
      items_[graph_.nodes[node].scope].items.push_back({false, node});
    }
    for (; next < regions.size(); ++next) add_region(regions[next]);
  }
  void add_region(std::uint32_t region) {
    items_[graph_.region_scope[region]].items.push_back({true, region});
  }

  void place_orders() {
    for (const Order& order : graph_.orders)
      items_[graph_.common_scope(graph_.scope_of(order.before), graph_.scope_of(order.after))]
          .orders.push_back(&order);
  }

  ScopeItems& with_uses(std::uint32_t scope) {
    ScopeItems& items = items_[scope];
    items.scope = scope;
    for (const Item& item : items.items)
      items.uses.push_back(item.is_region ? region_uses(item.index) : uses_of_node(graph_.nodes[item.index]));
    return items;
  }
  std::vector<Use> region_uses(std::uint32_t region) {
    std::vector<std::vector<Use>> branches;
    for (std::uint32_t scope = graph_.first_branch[region]; scope < graph_.first_branch[region + 1]; ++scope)
      branches.push_back(std::move(branch_uses_[scope]));
    return uses_of_region(graph_, region, branches);
  }

  const Graph& graph_;
  Report& report_;
  BufferScopes scopes_;
  std::vector<ScopeItems> items_;              // by scope
  std::vector<std::vector<Use>> branch_uses_;  // by scope
};

}  // namespace

std::string_view tessera::description::to_string(Cause cause) {
  static constexpr std::string_view names[] = {"edge", "dependency", "read after write", "write after read",
                                               "write after write"};
  return names[static_cast<std::size_t>(cause)];
}

void tessera::description::check_homes(const Graph& graph, Report& report) {
  const auto check = [&](std::uint32_t buffer, const Item& user) {
    if (buffer == no_index || graph.buffers[buffer].region == no_index) return;
    const std::uint32_t region = graph.buffers[buffer].region;
    for (std::uint32_t at = graph.scope_of(user); at != 0; at = graph.scopes[at].parent)
      if (graph.scopes[at].region == region) return;
    report.add(graph.about(user, cat("uses buffer ", shown(graph.buffers[buffer].name),
                                     " outside its region ", shown(graph.description->regions[region].id))));
  };
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (const Pin& pin : graph.nodes[node].pins) check(pin.buffer, {false, node});
  for (std::uint32_t region = 0; region < graph.condition.size(); ++region) {
    check(graph.condition[region], {true, region});
    check(graph.index_buffer[region], {true, region});
  }
}

std::vector<Sequence> tessera::description::order_steps(const Graph& graph, Report& report) {
  return Orderer(graph, report).run();
}

void tessera::description::for_each_node_in_order(const Graph& graph, const std::vector<Sequence>& sequences,
                                                  const std::function<void(std::uint32_t node)>& visit) {
  struct At {
    std::uint32_t scope = 0;
    std::size_t step = 0;
  };
  std::vector<At> open = {{}};
  while (!open.empty()) {
    At& at = open.back();
    if (at.step == sequences[at.scope].steps.size()) {
      open.pop_back();
      continue;
    }
    const Step& step = sequences[at.scope].steps[at.step++];
    if (step.kind == StepKind::node) visit(step.index);
    if (step.kind == StepKind::region)
      for (std::uint32_t scope = graph.first_branch[step.index + 1];
           scope-- > graph.first_branch[step.index];)
        open.push_back({scope});
  }
}
