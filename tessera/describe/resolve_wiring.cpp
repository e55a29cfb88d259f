#include <algorithm>

#include "tessera/describe/resolve.h"

using namespace tessera;
using namespace tessera::description;

namespace {

struct PinPosition {
  std::uint32_t node = no_index;
  std::uint32_t pin = no_index;
};

class WiringResolver {
 public:
  WiringResolver(Graph& graph, const Names& names, Report& report)
      : graph_(graph), d_(*graph.description), names_(names), report_(report) {}

  void run() {
    for (std::uint32_t i = 0; i < d_.edges.size(); ++i) take_edge(i);
    for (const Dependency& dependency : d_.dependencies) take_dependency(dependency);
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node)
      for (std::uint32_t pin = 0; pin < graph_.nodes[node].pins.size(); ++pin) find_buffer({node, pin});
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node)
      for (const Pin& pin : graph_.nodes[node].pins) note_use(node, pin);
    for (const auto* buffers : {&graph_.condition, &graph_.index_buffer})
      for (std::uint32_t buffer : *buffers)
        if (buffer != no_index) graph_.buffers[buffer].is_used = true;
  }

 private:
  [[nodiscard]] Pin& at(const PinPosition& position) {
    return graph_.nodes[position.node].pins[position.pin];
  }

  void take_edge(std::uint32_t i) {
    const Edge& edge = d_.edges[i];
    if (edge.incomplete) return expect_input(edge.to);
    const auto from = pin_named(edge, edge.from, edge.to, "from");
    const auto to = pin_named(edge, edge.to, edge.from, "to");
    if (!from || !to) {
      if (to) graph_.nodes[to->node].is_broken = true;
      return;
    }
    if (from->node == to->node)
      return fail(edge, to->node, &at(*to), "an edge leads from the node to itself", ErrorCode::cycle);
    Pin& source = at(*from);
    Pin& target = at(*to);
    if (source.is_scalar() || !writes(source.declared.access))
      return fail(edge, from->node, &source, "an edge begins at a parameter that writes nothing");
    if (target.is_scalar() || target.declared.access == Access::write)
      return fail(edge, to->node, &target, "an edge leads to a parameter that reads nothing");
    if (target.edge != no_index || !target.declared.buffer.empty())
      return fail(edge, to->node, &target,
                  target.edge != no_index ? "two edges lead to the parameter"
                                          : "the parameter has an edge and a buffer");
    target.edge = i;
    source.is_source = true;
    target.from_node = from->node;
    target.from_pin = from->pin;
    add_order({.before = {false, from->node}, .after = {false, to->node}, .edge = i}, edge.at);
  }

  /// An edge that could not be read brings something to a node.
  void expect_input(const PinName& to) {
    if (const auto node = names_.node(to.node)) graph_.nodes[*node].is_broken = true;
  }

  std::optional<PinPosition> pin_named(const Edge& edge, const PinName& name, const PinName& other,
                                       std::string_view end) {
    const auto node = names_.node(name.node);
    if (!node) {
      const bool is_region = names_.region(name.node).has_value();
      fail_between(names_.item(other.node), edge.at,
                   cat("an edge leads ", end, " node ", shown(name.node), ", which ",
                       is_region ? "is a region" : "does not exist"));
      return std::nullopt;
    }
    const std::vector<Pin>& pins = graph_.nodes[*node].pins;
    if (const auto* index = std::get_if<std::int64_t>(&name.parameter)) {
      if (*index >= 0 && *index < std::ssize(pins))
        return PinPosition{*node, static_cast<std::uint32_t>(*index)};
      if (knows_parameters(*node))
        fail(edge, *node, nullptr,
             cat("an edge leads ", end, " parameter ", *index, ", the node has ", pins.size()));
      return std::nullopt;
    }
    const auto& wanted = std::get<std::string>(name.parameter);
    for (std::uint32_t i = 0; i < pins.size(); ++i)
      if (pins[i].declared.name == wanted) return PinPosition{*node, i};
    if (knows_parameters(*node))
      fail(edge, *node, nullptr,
           cat("an edge leads ", end, " parameter ", shown(wanted), ", which the node has not"));
    return std::nullopt;
  }

  /// Of a node that was read in part, or of an op that does not exist, nobody knows what parameters it has.
  [[nodiscard]] bool knows_parameters(std::uint32_t node) const {
    const Node& n = d_.nodes[node];
    return !n.incomplete && (n.kind != NodeKind::op || graph_.nodes[node].card != nullptr);
  }

  void take_dependency(const Dependency& dependency) {
    const auto before = item_named(dependency, dependency.before, dependency.after);
    const auto after = item_named(dependency, dependency.after, dependency.before);
    if (!before || !after) return;
    if (*before == *after) {
      Diagnostic diagnostic = graph_.about(*before, "depends on itself");
      diagnostic.code = ErrorCode::cycle;
      diagnostic.at = d_.span_of(dependency.at);
      return report_.add(std::move(diagnostic));
    }
    add_order({.before = *before,
               .after = *after,
               .dependency = static_cast<std::uint32_t>(&dependency - d_.dependencies.data())},
              dependency.at);
  }

  std::optional<Item> item_named(const Dependency& dependency, const std::string& id,
                                 const std::string& other) {
    const auto item = names_.item(id);
    if (!item)
      fail_between(names_.item(other), dependency.at,
                   cat("a dependency names ", shown(id), ", which is no node and no region"));
    return item;
  }

  /// One end is not there: the problem belongs to the other, if that is.
  void fail_between(const std::optional<Item>& other, const Place& place, std::string message) {
    Diagnostic diagnostic;
    if (other) diagnostic = graph_.about(*other, "");
    diagnostic.code = ErrorCode::not_found;
    diagnostic.message = std::move(message);
    if (place.line != 0 || !other) diagnostic.at = d_.span_of(place);
    report_.add(std::move(diagnostic));
  }

  /// Nodes in two branches of one region never run in one launch, and a region is no node of its own body.
  void add_order(const Order& order, const Place& place) {
    const std::uint32_t scope =
        graph_.common_scope(graph_.scope_of(order.before), graph_.scope_of(order.after));
    if (graph_.lifted(order.before, scope) != graph_.lifted(order.after, scope))
      return graph_.orders.push_back(order);
    Diagnostic diagnostic =
        graph_.about(order.after, cat("cannot come after ", shown(graph_.id_of(order.before)),
                                      ": they stand in two branches of one region, or one in the other"));
    diagnostic.at = d_.span_of(place);
    report_.add(std::move(diagnostic));
  }

  /// Goes back along edges to a pin that has a buffer, or that begins one, and gives it to all pins on the
  /// way.
  void find_buffer(PinPosition position) {
    std::vector<PinPosition> way;
    while (at(position).buffer == no_index && at(position).edge != no_index &&
           way.size() <= d_.edges.size()) {
      way.push_back(position);
      position = {at(position).from_node, at(position).from_pin};
    }
    Pin& first = at(position);
    const bool is_ring = first.edge != no_index;  // reported as a cycle
    const bool begins =
        first.declared.access == Access::write || first.declared.access == Access::append || is_ring;
    if (first.buffer == no_index && begins && !first.is_scalar() && first.declared.buffer.empty())
      first.buffer = new_buffer(position);
    for (const PinPosition& next : way) at(next).buffer = first.buffer;
  }

  std::uint32_t new_buffer(const PinPosition& position) {
    const std::string& node = d_.nodes[position.node].id;
    graph_.buffers.push_back({.name = cat(node, ".", at(position).declared.name), .producer = position.node});
    return static_cast<std::uint32_t>(graph_.buffers.size() - 1);
  }

  void note_use(std::uint32_t node, const Pin& pin) {
    if (pin.buffer != no_index) {
      graph_.buffers[pin.buffer].is_used = true;
      if (pin.declared.access == Access::append) graph_.buffers[pin.buffer].is_appended = true;
      return;
    }
    const bool lacks_input = !pin.is_scalar() && pin.declared.required && pin.declared.buffer.empty();
    if (!lacks_input || graph_.nodes[node].is_broken) return;
    report_.add(graph_.about(node, pin, "the required input has no buffer and no edge"));
    graph_.nodes[node].is_broken = true;
  }

  void fail(const Edge& edge, std::uint32_t node, const Pin* pin, std::string message,
            ErrorCode code = ErrorCode::invalid_argument) {
    Diagnostic diagnostic = graph_.about(Item{false, node}, std::move(message));
    diagnostic.code = code;
    if (pin != nullptr) diagnostic.parameter = pin->declared.name;
    if (edge.at.line != 0) diagnostic.at = d_.span_of(edge.at);
    report_.add(std::move(diagnostic));
    graph_.nodes[node].is_broken = true;
  }

  Graph& graph_;
  const Description& d_;
  const Names& names_;
  Report& report_;
};

}  // namespace

void tessera::description::resolve_wiring(Graph& graph, const Names& names, Report& report) {
  WiringResolver(graph, names, report).run();
}
