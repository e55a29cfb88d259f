// Computing something of a scalar expression from its leaves up, without recursion: expressions nest as deep
// as a text is long.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tessera/ir/expr.h"
#include "tessera/ir/small_node_table.h"

namespace tessera::ir {

/// Calls `operation(op, values)` for each scalar operation that `is_operation` says yes to, with pointers to
/// the values of its operands, and `leaf(expr)` for everything else below; children first, each node once.
/// The value of the root.
template <class V, class IsOperation, class Leaf, class Operation>
V fold_expression(const Expr& root, IsOperation&& is_operation, Leaf&& leaf, Operation&& operation) {
  SmallNodeTable<V> done;
  SmallVector<const Expr*, 16> stack{&root};
  SmallVector<const V*, 4> values;
  while (!stack.empty()) {
    const Expr& expr = *stack.back();
    if (done.find(expr) != nullptr) {
      stack.pop_back();
      continue;
    }
    const auto* op = is_operation(expr) ? static_cast<const ScalarOp*>(&expr) : nullptr;
    if (op == nullptr) {
      V value = leaf(expr);
      done[expr] = std::move(value);
      stack.pop_back();
      continue;
    }
    const std::size_t before = stack.size();
    values.clear();
    for (std::size_t i = op->operands.size(); i-- > 0;) {
      const Expr& operand = *op->operands[i];
      values.insert(values.begin(), done.find(operand));
      if (values.front() == nullptr) stack.push_back(&operand);
    }
    if (stack.size() > before) continue;
    V value = operation(*op, std::span<const V* const>(values));
    done[expr] = std::move(value);
    stack.pop_back();
  }
  return std::move(*done.find(root));
}

}  // namespace tessera::ir
