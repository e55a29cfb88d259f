// Sets of nodes known to be equal, for one comparison.
#pragma once

#include <unordered_map>

#include "tessera/ir/node.h"

namespace tessera::ir {

/// Union-find by address.
class NodeClasses {
 public:
  [[nodiscard]] bool same(const Node* a, const Node* b) { return find(a) == find(b); }
  void join(const Node* a, const Node* b) { parent_[find(a)] = find(b); }
  void clear() { parent_.clear(); }

 private:
  const Node* find(const Node* node) {
    for (auto at = parent_.find(node); at != parent_.end() && at->second != node; at = parent_.find(node)) {
      const auto up = parent_.find(at->second);
      if (up != parent_.end()) at->second = up->second;
      node = at->second;
    }
    return node;
  }

  std::unordered_map<const Node*, const Node*> parent_;
};

}  // namespace tessera::ir
