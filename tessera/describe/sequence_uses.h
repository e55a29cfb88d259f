// What the steps of a schedule do with buffers, as the sequence they stand in sees it.
#pragma once

#include "tessera/describe/access_order.h"
#include "tessera/describe/validate.h"

namespace tessera::description {

/// Asked for each sequence once, those inside regions before what the regions stand in (deepest_first).
class SequenceUses {
 public:
  SequenceUses(const Graph& graph, const std::vector<Sequence>& sequences)
      : graph_(graph), sequences_(sequences), branch_uses_(graph.scopes.size()) {}

  /// By buffer and then by step, which is the item. Resets and zeros write.
  [[nodiscard]] std::vector<ItemUse> of(std::uint32_t scope);
  /// What all items of a sequence do with one buffer that others see, for the region it belongs to.
  void add(std::uint32_t scope, std::span<const ItemUse> uses) {
    branch_uses_[scope].push_back(whole_use(graph_, uses));
  }
  /// What was added.
  [[nodiscard]] const std::vector<Use>& outside(std::uint32_t scope) const { return branch_uses_[scope]; }
  /// Whether a use is of a node or a region.
  [[nodiscard]] bool is_item(std::uint32_t scope, const ItemUse& use) const {
    const StepKind kind = sequences_[scope].steps[use.item].kind;
    return kind == StepKind::node || kind == StepKind::region;
  }

 private:
  [[nodiscard]] std::vector<Use> region_uses(std::uint32_t region) const;

  const Graph& graph_;
  const std::vector<Sequence>& sequences_;
  std::vector<std::vector<Use>> branch_uses_;  // by scope
};

/// Calls `visit` with the uses of each buffer, a span of them.
template <class Visit>
void for_each_buffer(std::span<const ItemUse> all, const Visit& visit) {
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].use.buffer == all[begin].use.buffer) ++end;
    visit(all.subspan(begin, end - begin));
  }
}

/// What a launch does with the buffers that outlive it: `looks` at what they held before, or not; `writes`.
[[nodiscard]] std::vector<Use> launch_uses(const Program& program);

}  // namespace tessera::description
