#include "tessera/describe/graph.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::description;

Item Graph::lifted(Item item, std::uint32_t scope) const {
  for (std::uint32_t at = scope_of(item); at != scope; at = scope_of(item)) {
    TESSERA_CHECK(at != 0, "the item does not stand in the scope");
    item = {true, scopes[at].region};
  }
  return item;
}

std::uint32_t Graph::common_scope(std::uint32_t a, std::uint32_t b) const {
  while (a != b) {
    std::uint32_t& deeper = scopes[a].depth >= scopes[b].depth ? a : b;
    deeper = scopes[deeper].parent;
  }
  return a;
}

Diagnostic Graph::about(const Item& item, std::string message) const {
  const Description& d = *description;
  if (item.is_region) {
    const Region& region = d.regions[item.index];
    return {.block = region.block,
            .node = region.id,
            .is_region = true,
            .message = std::move(message),
            .at = d.span_of(region.at)};
  }
  const Node& node = d.nodes[item.index];
  return {.block = node.block, .node = node.id, .message = std::move(message), .at = d.span_of(node.at)};
}

Diagnostic Graph::about(std::uint32_t node, const Pin& pin, std::string message) const {
  Diagnostic out = about(Item{false, node}, std::move(message));
  out.parameter = pin.declared.name;
  if (pin.declared.at.line != 0) out.at = description->span_of(pin.declared.at);
  return out;
}

std::vector<std::uint32_t> tessera::description::deepest_first(const Graph& graph) {
  std::vector<std::uint32_t> out(graph.scopes.size());
  std::iota(out.begin(), out.end(), 0U);
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return graph.scopes[a].depth > graph.scopes[b].depth;
  });
  return out;
}
