// The end of writing a node; see node.h. Included by the files that create nodes.
#pragma once

#include "tessera/ir/visit.h"

namespace tessera::ir {

template <class N>
Ref<N> seal(std::unique_ptr<N> draft) {
  bool has_variables = std::is_same_v<N, Var>;
  const auto look = [&](const Node& child) { has_variables = has_variables || child.has_variables(); };
  ChildVisitor<decltype(look)> visitor{look};
  visit_fields(*draft, visitor);
  draft->has_variables_ = has_variables;
  return Ref<N>(draft.release());
}

}  // namespace tessera::ir
