// Runs ahead of a depth-first walk over a graph that does not fit the caches. Such a walk waits for the
// memory of one node after the other; the scout asks for many at a time, of which the walk meets each later.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "tessera/ir/node_table.h"
#include "tessera/ir/visit.h"

namespace tessera::ir {

/// `Known` are the nodes that the walk is done with: of those it looks at the value, of others at the node.
/// What the scout forgets or leaves out costs time, never an answer.
template <class Known>
class Scout {
 public:
  /// The scout uses the table while it lives.
  explicit Scout(NodeTable<Known>& known) : known_(known) {}

  /// Asks for the memory of `node`, to which the walk comes from `from`, and will soon for that of the nodes
  /// below.
  void ask(const Node& node, const Node& from) {
    if (is_near(node, from)) return;
    if (const Known* value = known_.find(node)) return __builtin_prefetch(value);
    __builtin_prefetch(&node);
    if (end_ - begin_ == on_the_way_.size()) return;
    if (recent_ == nullptr) recent_ = std::make_unique<Recent>();
    const Node*& last = (*recent_)[slot_of(node)];
    if (last == &node) return;
    last = &node;
    on_the_way_[end_++ % on_the_way_.size()] = &node;
  }

  /// Goes on with the node that was asked for first, once it has had time to arrive. To be called at each
  /// step of the walk.
  void step() {
    if (end_ - begin_ < lag) return;
    credit_ = std::min(credit_ + credit_per_step, largest_credit);
    if (credit_ <= 0) return;
    const Node& node = *on_the_way_[begin_++ % on_the_way_.size()];
    for_each_child(node, [&](const Node& below) {
      ask(below, node);
      --credit_;
    });
  }

 private:
  static constexpr std::size_t lag = 8;  ///< about the time of one cache miss
  /// Nodes with very many below are paid for later, so that the scout works no more than in proportion to the
  /// walk.
  static constexpr std::int64_t credit_per_step = 4, largest_credit = 64;
  static constexpr int recent_bits = 12;
  /// By slot: the last one asked for.
  using Recent = std::array<const Node*, std::size_t{1} << recent_bits>;

  /// The processor itself brings what lies near what it reads.
  static bool is_near(const Node& a, const Node& b) {
    constexpr std::uintptr_t reach = 4096;
    return address(a) - address(b) + reach < 2 * reach;
  }
  static std::uintptr_t address(const Node& node) { return reinterpret_cast<std::uintptr_t>(&node); }
  static std::size_t slot_of(const Node& node) {
    return address(node) / node_slot_bytes * 0x9e3779b97f4a7c15ULL >> (64 - recent_bits);
  }

  NodeTable<Known>& known_;
  std::array<const Node*, 64> on_the_way_ = {};  ///< a ring, from `begin_` to `end_`
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t credit_ = 0;
  std::unique_ptr<Recent> recent_;  ///< made when it is needed: most walks are short
};

}  // namespace tessera::ir
