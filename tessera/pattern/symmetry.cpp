#include "tessera/pattern/symmetry.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tessera/pattern/core_symmetry.h"

using namespace tessera::pattern;

namespace {

/// A private vertex in a slot of a commutative node.
struct Branch {
  std::uint32_t tree = 0;
  std::uint32_t result = 0;
  std::uint32_t vertex = 0;

  [[nodiscard]] bool is_equal(const Branch& other) const {
    return tree == other.tree && result == other.result;
  }
};

/// The rules for equal branches of node i.
void add_branch_rules(const PatternShape& shape, std::span<const std::uint32_t> trees,
                      std::span<const std::uint32_t> rank, std::uint32_t i, Symmetries& out) {
  std::vector<Branch> branches;
  for (const auto& [vertex, result] : shape.slots[i])
    if (vertex != none && shape.is_private[vertex]) branches.push_back({trees[vertex], result, vertex});
  std::ranges::sort(branches, {}, [&](const Branch& b) {
    return std::tuple(b.tree, b.result, b.vertex < rank.size() ? rank[b.vertex] : b.vertex);
  });
  for (auto first = branches.begin(); first != branches.end();) {
    const auto last =
        std::find_if(first, branches.end(), [&](const Branch& b) { return !b.is_equal(*first); });
    if (first->vertex < shape.nodes) {
      for (auto at = first; at + 1 != last; ++at) out.nodes.push_back({at->vertex, (at + 1)->vertex});
    } else if (last - first > 1) {
      auto& group = out.equal_externals.emplace_back();
      for (auto at = first; at != last; ++at) group.push_back(at->vertex - shape.nodes);
    }
    first = last;
  }
}

}  // namespace

Symmetries tessera::pattern::find_symmetries(const Variant& variant,
                                             const std::vector<PatternExternal>& externals,
                                             const std::vector<bool>& is_commutative,
                                             std::span<const std::uint32_t> rank) {
  const PatternShape shape = shape_of(variant, externals, is_commutative);
  TreeClasses trees(shape);
  Symmetries out;
  for (const auto& [first, other] : find_core_exchanges(shape, trees, rank)) {
    if (first < shape.nodes)
      out.nodes.push_back({first, other});
    else
      out.externals.push_back({first - shape.nodes, other - shape.nodes});
  }
  if (std::ranges::find(is_commutative, true) == is_commutative.end()) return out;
  std::vector<std::uint32_t> labels(shape.size());
  std::iota(labels.begin(), labels.end(), 0U);
  const std::vector<std::uint32_t> classes = trees.number(labels);
  for (std::uint32_t i = 0; i < shape.nodes; ++i)
    if (is_commutative[i]) add_branch_rules(shape, classes, rank, i, out);
  return out;
}
