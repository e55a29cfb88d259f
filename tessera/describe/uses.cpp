#include "tessera/describe/uses.h"

#include <algorithm>
#include <map>

using namespace tessera;
using namespace tessera::description;

namespace {

Use use_of_pin(const Pin& pin) {
  const Access access = pin.declared.access;
  return {.buffer = pin.buffer,
          .reads = description::reads(access),
          .looks = description::reads(access),
          .writes = writes(access),
          .defines = access == Access::write,
          .appends = access == Access::append,
          .from_node = pin.from_node,
          .from_pin = pin.from_pin};
}

/// Two pins of one node on one buffer.
void merge(Use& into, const Use& other) {
  into.reads |= other.reads;
  into.looks |= other.looks;
  into.writes |= other.writes;
  into.appends |= other.appends;
  into.defines = into.writes && !into.reads && !into.appends;
  if (into.from_node == no_index || other.writes)
    into.from_node = other.from_node, into.from_pin = other.from_pin;
}

/// What any of the branches does with a buffer, and how many define it.
struct Merged {
  Use use;
  std::int64_t defining = 0;
};

/// The use of the region as a whole.
Use outside(const Merged& merged, const Region& region) {
  Use use = merged.use;
  use.defines = !is_loop(region.kind) && use.writes && !use.reads && !use.appends;
  const bool always_runs_one = region.kind == RegionKind::if_ && region.branches == 2;
  use.may_skip = use.defines && !(always_runs_one && merged.defining == 2);
  // A loop may run zero times: what it writes is then what was there before.
  if (is_loop(region.kind) && use.writes && !use.appends) use.reads = true;
  return use;
}

}  // namespace

std::uint32_t BufferScopes::reset_scope(const Graph& graph, std::uint32_t buffer) {
  const GraphBuffer& b = graph.buffers[buffer];
  return b.lifetime == Lifetime::region && b.region != no_index ? graph.region_scope[b.region] : 0;
}

BufferScopes tessera::description::buffer_scopes(const Graph& graph) {
  BufferScopes out{std::vector<std::uint32_t>(graph.buffers.size(), no_index)};
  const auto add = [&](std::uint32_t buffer, std::uint32_t scope) {
    if (buffer == no_index) return;
    std::uint32_t& common = out.common[buffer];
    common = common == no_index ? scope : graph.common_scope(common, scope);
  };
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins) add(pin.buffer, node.scope);
  for (std::uint32_t region = 0; region < graph.region_scope.size(); ++region) {
    add(graph.condition[region], graph.region_scope[region]);
    add(graph.index_buffer[region], graph.region_scope[region]);
  }
  for (std::uint32_t buffer = 0; buffer < graph.buffers.size(); ++buffer)
    if (graph.buffers[buffer].is_appended) add(buffer, BufferScopes::reset_scope(graph, buffer));
  return out;
}

std::vector<Use> tessera::description::uses_of_node(const GraphNode& node) {
  std::vector<Use> out;
  for (const Pin& pin : node.pins)
    if (pin.buffer != no_index) out.push_back(use_of_pin(pin));
  std::stable_sort(out.begin(), out.end(), [](const Use& a, const Use& b) { return a.buffer < b.buffer; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (kept > 0 && out[kept - 1].buffer == out[i].buffer)
      merge(out[kept - 1], out[i]);
    else
      out[kept++] = out[i];
  out.resize(kept);
  return out;
}

std::vector<Use> tessera::description::uses_of_region(const Graph& graph, std::uint32_t region,
                                                      const std::vector<std::vector<Use>>& branch_uses) {
  std::map<std::uint32_t, Merged> all;
  for (const auto& branch : branch_uses)
    for (const Use& use : branch) {
      Merged& merged = all.try_emplace(use.buffer, Merged{.use = {.buffer = use.buffer}}).first->second;
      merged.use.reads |= use.reads;
      merged.use.looks |= use.looks;
      merged.use.writes |= use.writes;
      merged.use.appends |= use.appends;
      merged.defining += use.defines ? 1 : 0;
    }
  std::map<std::uint32_t, Use> uses;
  for (const auto& [buffer, merged] : all) uses[buffer] = outside(merged, graph.description->regions[region]);
  if (const std::uint32_t index = graph.index_buffer[region]; index != no_index)
    uses[index] = {.buffer = index, .writes = true, .defines = true};
  if (const std::uint32_t condition = graph.condition[region]; condition != no_index) {
    Use& use = uses[condition];
    use.buffer = condition;
    use.reads = use.looks = true;
    use.defines = use.may_skip = false;
  }
  std::vector<Use> out;
  for (const auto& [buffer, use] : uses) out.push_back(use);
  return out;
}
