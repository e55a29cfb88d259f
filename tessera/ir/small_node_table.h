// A map from nodes to values for walks that mostly meet few nodes, as over the size of a tensor: as long as
// there are few, nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/ir/node_table.h"

namespace tessera::ir {

/// V can be made of nothing and moved. References stay valid until the next value is made.
template <class V>
class SmallNodeTable {
 public:
  /// The value of `node`, or null.
  [[nodiscard]] V* find(const Node& node) {
    if (many_) return many_->find(node);
    for (std::size_t i = 0; i < count_; ++i)
      if (nodes_[i] == &node) return &values_[i];
    return nullptr;
  }
  /// The value of `node`, made if there is none.
  V& operator[](const Node& node) {
    if (V* known = find(node)) return *known;
    if (!many_ && count_ == few) move_to_many();
    if (many_) return (*many_)[node];
    nodes_[count_] = &node;
    return values_[count_++];
  }

 private:
  static constexpr std::size_t few = 24;

  void move_to_many() {
    many_.emplace();
    for (std::size_t i = 0; i < count_; ++i) (*many_)[*nodes_[i]] = std::move(values_[i]);
  }

  std::size_t count_ = 0;
  std::array<const Node*, few> nodes_;  ///< the first `count_`, unless there are many
  std::array<V, few> values_ = {};
  std::optional<NodeTable<V>> many_;
};

}  // namespace tessera::ir
