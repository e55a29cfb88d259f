// A set of nodes by structure: finds the node equal to a given one. What CSE and every cache of nodes stand
// on.
#pragma once

#include <unordered_map>

#include "tessera/base/hash.h"
#include "tessera/ir/node.h"
#include "tessera/ir/structural_hash.h"

namespace tessera::ir {

/// The hash finds, structural equality decides: a collision costs time, never an answer.
class StructuralSet {
 public:
  using HashFunction = Hash128 (*)(const Node&, CompareMode);

  explicit StructuralSet(CompareMode mode, HashFunction hash = &structural_hash) : mode_(mode), hash_(hash) {}

  /// The node in the set that equals `node`; `node` itself, now in the set, if there was none.
  NodeRef insert(const NodeRef& node);
  /// The node in the set that equals `node`, or null.
  [[nodiscard]] const Node* find(const Node& node) const;
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  [[nodiscard]] const Node* find(const Node& node, const Hash128& hash) const;

  CompareMode mode_;
  HashFunction hash_;
  std::unordered_multimap<Hash128, NodeRef> nodes_;
};

}  // namespace tessera::ir
