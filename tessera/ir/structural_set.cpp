#include "tessera/ir/structural_set.h"

#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::ir;

const Node* StructuralSet::find(const Node& node, const Hash128& hash) const {
  const auto [first, last] = nodes_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (structural_equal(*at->second, node, mode_)) return at->second.get();
  return nullptr;
}

const Node* StructuralSet::find(const Node& node) const { return find(node, hash_(node, mode_)); }

NodeRef StructuralSet::insert(const NodeRef& node) {
  const Hash128 hash = hash_(*node, mode_);
  if (const Node* known = find(*node, hash)) return NodeRef(known);
  nodes_.emplace(hash, node);
  return node;
}
