// The one list of node types. Everything generic (equality, hash, traversal, rewriting, printing, JSON,
// freeing) is generated from it: a new node type is added here and in NodeKind.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// In the order of NodeKind.
using AllNodes = std::tuple<ScalarType, TensorType, TupleType, Var, IntConst, FloatConst, BoolConst, Dense,
                            Param, ScalarOp, Call, Tuple, Item, Invoke, IfRegion, SwitchRegion, WhileRegion,
                            ForRegion, Assign, Function, Module>;

inline constexpr std::size_t node_kind_count = std::tuple_size_v<AllNodes>;

/// Calls `f(node as its concrete type)`. All branches return the same type.
template <class F>
decltype(auto) visit_node(const Node& node, F&& f) {
  using Return = decltype(f(std::declval<const ScalarType&>()));
  return [&]<std::size_t... i>(std::index_sequence<i...>)->Return {
    using Entry = Return (*)(const Node&, F&);
    static constexpr std::array<Entry, sizeof...(i)> table{+[](const Node& n, F& g) -> Return {
      using N = std::tuple_element_t<i, AllNodes>;
      static_assert(static_cast<std::size_t>(N::node_kind) == i);
      return g(static_cast<const N&>(n));
    }...};
    return table[static_cast<std::size_t>(node.kind())](node, f);
  }
  (std::make_index_sequence<node_kind_count>());
}

/// "assign", "tensor_type", …: the kind of a node, for messages and JSON.
[[nodiscard]] std::string_view to_string(NodeKind kind);

}  // namespace tessera::ir
