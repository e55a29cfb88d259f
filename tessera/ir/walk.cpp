#include "tessera/ir/walk.h"

#include <algorithm>

#include "tessera/ir/small_node_table.h"
#include "tessera/ir/visit.h"

using namespace tessera::ir;

namespace {

/// What is reached from `root`, each once, children before parents. `below(node, f)` calls f for each child.
template <class N, class Below>
std::vector<const N*> children_first(const N& root, Below&& below) {
  struct Task {
    const N* node;
    bool below_done;
  };
  std::vector<const N*> order;
  std::vector<Task> stack{{&root, false}};
  SmallNodeTable<bool> seen;
  while (!stack.empty()) {
    const Task task = stack.back();
    stack.pop_back();
    if (task.below_done) {
      order.push_back(task.node);
      continue;
    }
    if (bool& known = seen[*task.node]; std::exchange(known, true)) continue;
    stack.push_back({task.node, true});
    const std::size_t first = stack.size();
    below(*task.node, [&](const N& child) { stack.push_back({&child, false}); });
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
  }
  return order;
}

template <class F>
void for_each_inner(const Function& function, F&& f) {
  for (const auto& statement : function.body)
    if (statement->value->kind() >= NodeKind::invoke && statement->value->kind() <= NodeKind::for_region)
      for_each_child(*statement->value, [&](const Node& child) {
        if (const auto* inner = as<Function>(child)) f(*inner);
      });
}

}  // namespace

std::vector<const Node*> tessera::ir::post_order(const Node& root) {
  return children_first(root, [](const Node& node, auto&& f) { for_each_child(node, f); });
}

std::vector<const Function*> tessera::ir::functions_below(const Function& root) {
  return children_first(root, [](const Function& function, auto&& f) { for_each_inner(function, f); });
}
