// The one list of node types. Everything generic (equality, hash, traversal, rewriting, printing, JSON,
// freeing) is generated from it: a new node type is added here and in NodeKind.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// In the order of NodeKind.
using AllNodes = std::tuple<ScalarType, TensorType, TupleType, Var, IntConst, FloatConst, BoolConst, Dense,
                            Param, ScalarOp, Call, Tuple, Item, Invoke, IfRegion, SwitchRegion, WhileRegion,
                            ForRegion, Assign, Function, Module>;

inline constexpr std::size_t node_kind_count = std::tuple_size_v<AllNodes>;

namespace detail {

template <class Return, class F, class N>
Return call_as(const Node& node, F& f) {
  return f(static_cast<const N&>(node));
}

template <class Return, class F, class... N>
Return dispatch(const Node& node, F& f, const std::tuple<N...>*) {
  static constexpr Return (*table[])(const Node&, F&) = {&call_as<Return, F, N>...};
  return table[static_cast<std::size_t>(node.kind())](node, f);
}

template <class... N>
constexpr bool in_order_of_kind(const std::tuple<N...>*) {
  std::size_t index = 0;
  return ((static_cast<std::size_t>(N::node_kind) == index++) && ...);
}
static_assert(in_order_of_kind(static_cast<const AllNodes*>(nullptr)));

}  // namespace detail

/// Calls `f(node as its concrete type)`. All branches return the same type.
template <class F>
decltype(auto) visit_node(const Node& node, F&& f) {
  using Return = decltype(f(std::declval<const ScalarType&>()));
  return detail::dispatch<Return>(node, f, static_cast<const AllNodes*>(nullptr));
}

/// "assign", "tensor_type", …: the kind of a node, for messages and JSON.
[[nodiscard]] std::string_view to_string(NodeKind kind);

}  // namespace tessera::ir
