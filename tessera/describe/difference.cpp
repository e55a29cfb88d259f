#include "tessera/describe/difference.h"

#include <algorithm>
#include <bit>

#include "tessera/describe/diagnostic.h"

using namespace tessera;
using namespace tessera::description;

namespace {

bool same(const Block& a, const Block& b) { return a.id == b.id && a.parent == b.parent; }

bool same(const Buffer& a, const Buffer& b) {
  return a.id == b.id && a.lifetime == b.lifetime && a.dtype == b.dtype && a.region == b.region &&
         a.shape.size() == b.shape.size();
}

bool same(const Parameter& a, const Parameter& b) {
  return a.name == b.name && a.access == b.access && a.scalar.has_value() == b.scalar.has_value() &&
         a.in_device_memory == b.in_device_memory && a.dtype == b.dtype && a.shape == b.shape &&
         a.buffer == b.buffer && a.required == b.required;
}

bool calls_same(const Node& a, const Node& b) {
  return a.call == b.call && a.attributes.entries() == b.attributes.entries();
}

/// Which op a node calls does not count.
bool same(const Node& a, const Node& b) {
  return a.id == b.id && a.block == b.block && a.within == b.within && a.kind == b.kind && a.code == b.code &&
         (a.kind == NodeKind::op || calls_same(a, b)) &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(),
                    [](const Parameter& p, const Parameter& q) { return same(p, q); });
}

bool same(const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; }
bool same(const Dependency& a, const Dependency& b) { return a.before == b.before && a.after == b.after; }

bool same(const Region& a, const Region& b) {
  return a.id == b.id && a.block == b.block && a.within == b.within && a.kind == b.kind &&
         a.branches == b.branches && a.condition == b.condition && a.count == b.count && a.index == b.index &&
         a.limit == b.limit;
}

/// By bits: 0 and -0 are two numbers, and a NaN is the same as itself.
bool same(const std::optional<ScalarValue>& a, const std::optional<ScalarValue>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  const auto bits = [](const ScalarValue& v) {
    return std::visit([](auto number) { return std::bit_cast<std::uint64_t>(number); }, v);
  };
  return a->index() == b->index() && bits(*a) == bits(*b);
}

template <class T>
std::string name_of(const T& thing) {
  if constexpr (requires { thing.id; })
    return shown(thing.id);
  else if constexpr (requires { thing.from; })
    return cat("from ", shown(thing.from.node), " to ", shown(thing.to.node));
  else
    return cat("of ", shown(thing.after), " on ", shown(thing.before));
}

/// "node 'k' added", "edge from 'a' to 'b' removed", "region 'r' changed": the first difference, or nothing.
template <class T>
std::string first_difference(std::string_view what, const std::vector<T>& before,
                             const std::vector<T>& after) {
  const std::size_t common = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (same(before[i], after[i])) continue;
    if (after.size() > before.size()) return cat(what, " ", name_of(after[i]), " added");
    if (after.size() < before.size()) return cat(what, " ", name_of(before[i]), " removed");
    return cat(what, " ", name_of(after[i]), " changed");
  }
  if (after.size() > common) return cat(what, " ", name_of(after[common]), " added");
  if (before.size() > common) return cat(what, " ", name_of(before[common]), " removed");
  return "";
}

std::string structural_difference(const Description& before, const Description& after) {
  for (std::string text : {first_difference("node", before.nodes, after.nodes),
                           first_difference("edge", before.edges, after.edges),
                           first_difference("dependency", before.dependencies, after.dependencies),
                           first_difference("region", before.regions, after.regions),
                           first_difference("buffer", before.buffers, after.buffers),
                           first_difference("block", before.blocks, after.blocks)})
    if (!text.empty()) return text;
  return "";
}

}  // namespace

Difference tessera::description::compare(const Description& before, const Description& after) {
  Difference out{.structure = structural_difference(before, after)};
  if (!out.structure.empty()) return out;
  for (std::uint32_t i = 0; i < after.buffers.size(); ++i)
    if (before.buffers[i].shape != after.buffers[i].shape) out.shapes.push_back(i);
  for (std::uint32_t i = 0; i < after.nodes.size(); ++i) {
    if (before.nodes[i].grid != after.nodes[i].grid) out.grids.push_back(i);
    if (!calls_same(before.nodes[i], after.nodes[i])) out.ops.push_back(i);
    const auto& parameters = after.nodes[i].parameters;
    for (std::uint32_t k = 0; k < parameters.size(); ++k)
      if (!same(parameters[k].scalar, before.nodes[i].parameters[k].scalar)) out.numbers.push_back({i, k});
  }
  return out;
}
