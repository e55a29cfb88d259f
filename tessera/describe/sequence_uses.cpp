#include "tessera/describe/sequence_uses.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::description;

std::vector<ItemUse> SequenceUses::of(std::uint32_t scope) {
  std::vector<ItemUse> out;
  const auto& steps = sequences_[scope].steps;
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind == StepKind::node)
      for (const Use& use : uses_of_node(graph_.nodes[steps[s].index])) out.push_back({s, use});
    else if (steps[s].kind == StepKind::region)
      for (const Use& use : region_uses(steps[s].index)) out.push_back({s, use});
    else
      out.push_back({s, {.buffer = steps[s].index, .writes = true}});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ItemUse& a, const ItemUse& b) { return a.use.buffer < b.use.buffer; });
  return out;
}

std::vector<Use> SequenceUses::region_uses(std::uint32_t region) const {
  const auto begin = branch_uses_.begin();
  return uses_of_region(graph_, region,
                        {begin + graph_.first_branch[region], begin + graph_.first_branch[region + 1]});
}

std::vector<Use> tessera::description::launch_uses(const Program& program) {
  const Graph& graph = program.graph;
  SequenceUses all(graph, program.schedule.sequences);
  const BufferScopes scopes = buffer_scopes(graph);
  for (const std::uint32_t scope : deepest_first(graph)) {
    const std::vector<ItemUse> uses = all.of(scope);
    for_each_buffer(uses, [&](std::span<const ItemUse> of_buffer) {
      std::vector<ItemUse> items;
      std::copy_if(of_buffer.begin(), of_buffer.end(), std::back_inserter(items),
                   [&](const ItemUse& use) { return all.is_item(scope, use); });
      const std::uint32_t buffer = items[0].use.buffer;
      const bool is_inside =
          graph.buffers[buffer].lifetime == Lifetime::region && scopes.common[buffer] == scope;
      if (!is_inside) all.add(scope, items);
    });
  }
  return all.outside(0);
}
