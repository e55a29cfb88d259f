// The base of every IR node, and the pointer to one.
//
// Nodes are immutable once sealed, shared by reference counts, and may be read and shared by any thread. A
// node is written in three steps: fill a draft, seal it, hand out the Ref.
//
//   auto draft = std::make_unique<Assign>(span);
//   draft->value = …;
//   Ref<Assign> node = seal(std::move(draft));
//
// Freeing never recurses: a chain of a million nodes is released with a constant stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "tessera/base/ref.h"
#include "tessera/ir/node_memory.h"
#include "tessera/ir/span.h"

namespace tessera::ir {

/// One enumerator per node type; nodes.h lists the types in the same order.
enum class NodeKind : std::uint8_t {
  scalar_type,
  tensor_type,
  tuple_type,
  var,
  int_const,
  float_const,
  bool_const,
  dense,
  param,
  scalar_op,
  call,
  tuple,
  item,
  invoke,
  if_region,
  switch_region,
  while_region,
  for_region,
  assign,
  function,
  module,
};

class Node {
 public:
  Node& operator=(const Node&) = delete;
  static void* operator new(std::size_t bytes) { return SlotMemory::allocate(node_bytes(bytes)); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    SlotMemory::free(memory, node_bytes(bytes));
  }

  [[nodiscard]] NodeKind kind() const { return kind_; }
  [[nodiscard]] const Span& span() const { return span_; }
  /// Whether a variable occurs anywhere below. Without one, a node means the same in every context.
  [[nodiscard]] bool has_variables() const { return has_variables_; }
  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) release_last(this);
  }

  /// Whether more than one place holds this node. A hint for caches: the answer may be out of date at once.
  [[nodiscard]] bool maybe_shared() const { return refs_.load(std::memory_order_relaxed) > 1; }

 protected:
  Node(NodeKind kind, Span span) : kind_(kind), span_(std::move(span)) {}
  /// A new draft with the same content.
  Node(const Node& other) : kind_(other.kind_), span_(other.span_) {}
  ~Node() = default;

 private:
  template <class N>
  friend Ref<N> seal(std::unique_ptr<N> draft);
  static void release_last(const Node* node);

  mutable std::atomic<std::uint32_t> refs_{0};
  NodeKind kind_;
  bool has_variables_ = false;
  Span span_;
};

/// What a value is: scalar, tensor or tuple.
class Type : public Node {
 protected:
  using Node::Node;
};

/// Something that has a value.
class Expr : public Node {
 protected:
  using Node::Node;
};

/// The base of a concrete node type: `struct Assign final : Concrete<Node, NodeKind::assign>`.
template <class Base, NodeKind kind_value>
struct Concrete : Base {
  static constexpr NodeKind node_kind = kind_value;
  explicit Concrete(Span span = {}) : Base(kind_value, std::move(span)) {}
};

using NodeRef = Ref<Node>;
using TypeRef = Ref<Type>;
using ExprRef = Ref<Expr>;

/// The node as a T if it is one, else null. T is a concrete node type.
template <class T>
[[nodiscard]] const T* as(const Node& node) {
  return node.kind() == T::node_kind ? static_cast<const T*>(&node) : nullptr;
}
template <class T, class U>
[[nodiscard]] const T* as(const Ref<U>& node) {
  return node == nullptr ? nullptr : as<T>(static_cast<const Node&>(*node));
}
template <class T>
[[nodiscard]] bool is(const Node& node) {
  return node.kind() == T::node_kind;
}
template <class T, class U>
[[nodiscard]] bool is(const Ref<U>& node) {
  return as<T>(node) != nullptr;
}

/// Ends the writing of a draft: from here on the node is shared and immutable. Defined in seal.h.
template <class N>
[[nodiscard]] Ref<N> seal(std::unique_ptr<N> draft);

}  // namespace tessera::ir
