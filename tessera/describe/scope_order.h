// Orders one scope: its items, the links between them, and the sequence of steps that follows.
#pragma once

#include "tessera/describe/access_order.h"
#include "tessera/describe/scope_sort.h"

namespace tessera::description {

/// The items of a scope, in the order of the listing, with what they do.
struct ScopeItems {
  std::uint32_t scope = 0;
  std::vector<Item> items;
  std::vector<std::vector<Use>> uses;  ///< by item
  std::vector<const Order*> orders;    ///< those whose innermost common scope this is
};

struct OrderedScope {
  Sequence sequence;
  std::vector<Use> uses;  ///< of the scope as a whole, one per buffer
};

/// Orders a scope whose inner scopes are ordered. `scopes` says where the users of each buffer meet.
[[nodiscard]] OrderedScope order_scope(const Graph& graph, const ScopeItems& items,
                                       const BufferScopes& scopes, Report& report);

}  // namespace tessera::description
