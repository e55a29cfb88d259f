#include "tessera/pattern/step_cost.h"

#include <algorithm>

#include "tessera/ir/dim.h"
#include "tessera/pattern/tile.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

double bytes_of(const Graph& graph, ValueId value, std::int64_t usual_size) {
  const ValueType& type = graph.type(value);
  if (type.shape == none) return 0;
  double bytes = type.dtype ? static_cast<double>(ir::size_of(*type.dtype)) : 4;
  for (const ir::Dim& dim : graph.shape(type.shape)) {
    const auto size = ir::evaluate(dim, [&](const ir::Var&) { return std::optional(usual_size); });
    bytes *= static_cast<double>(std::max<std::int64_t>(size.value_or(usual_size), 0));
  }
  return bytes;
}

}  // namespace

double StepCosts::of(const Graph& graph, std::span<const NodeId> nodes) const {
  Tile tile{.nodes = {nodes.begin(), nodes.end()}};
  find_boundary(graph, tile);
  double bytes = 0;
  for (const ValueId value : tile.inputs) bytes += bytes_of(graph, value, usual_size);
  for (const ValueId value : tile.outputs) bytes += bytes_of(graph, value, usual_size);
  return step_ns + byte_ns * bytes;
}
