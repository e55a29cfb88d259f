#include "tessera/describe/exchange_ops.h"

#include <utility>

#include "tessera/describe/check_types.h"
#include "tessera/describe/resolve.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// Gives pins the buffers and edges of those at the same positions; false if they are others.
bool take_wiring(const GraphNode& from, GraphNode& to) {
  if (from.pins.size() != to.pins.size()) return false;
  for (std::size_t i = 0; i < to.pins.size(); ++i) {
    const Pin& before = from.pins[i];
    Pin& pin = to.pins[i];
    if (before.is_scalar() != pin.is_scalar() || before.declared.name != pin.declared.name ||
        before.declared.access != pin.declared.access)
      return false;
    pin.buffer = before.buffer;
    pin.edge = before.edge;
    pin.from_node = before.from_node;
    pin.from_pin = before.from_pin;
    pin.is_source = before.is_source;
  }
  return true;
}

/// Ops whose results differ from call to call are no part of groups.
bool run_alike(const GraphNode& a, const GraphNode& b) {
  return a.card != nullptr && b.card != nullptr && a.card->traits.random == b.card->traits.random;
}

bool exchange(Graph& graph, std::uint32_t index) {
  GraphNode& node = graph.nodes[index];
  const GraphNode before = std::exchange(node, GraphNode{.pins = {}, .scope = node.scope});
  Report report;
  resolve_parameters(graph, index, nullptr, report);
  if (!run_alike(before, node) || !take_wiring(before, node)) return false;
  check_types(graph, index, report);
  return report.diagnostics().empty();
}

}  // namespace

std::shared_ptr<const Program> tessera::description::exchange_ops(
    const Program& before, std::shared_ptr<const Description> description,
    std::span<const std::uint32_t> nodes) {
  auto out = std::make_shared<Program>(before);
  out->description = std::move(description);
  out->graph.description = out->description.get();
  for (const std::uint32_t node : nodes)
    if (!exchange(out->graph, node)) return nullptr;
  return out;
}
