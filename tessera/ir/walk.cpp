#include "tessera/ir/walk.h"

#include <algorithm>

#include "tessera/ir/node_table.h"
#include "tessera/ir/visit.h"

using namespace tessera::ir;

namespace {

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
  struct Task {
    const Node* node;
    bool below_done;
  };
  std::vector<const Node*> order;
  std::vector<Task> stack{{&root, false}};
  NodeTable<bool> seen;
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
    for_each_child(*task.node, [&](const Node& child) { stack.push_back({&child, false}); });
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
  }
  return order;
}

std::vector<const Function*> tessera::ir::functions_below(const Function& root) {
  struct Task {
    const Function* function;
    bool below_done;
  };
  std::vector<const Function*> order;
  std::vector<Task> stack{{&root, false}};
  NodeTable<bool> seen;
  while (!stack.empty()) {
    const Task task = stack.back();
    stack.pop_back();
    if (task.below_done) {
      order.push_back(task.function);
      continue;
    }
    if (bool& known = seen[*task.function]; std::exchange(known, true)) continue;
    stack.push_back({task.function, true});
    for_each_inner(*task.function, [&](const Function& inner) { stack.push_back({&inner, false}); });
  }
  return order;
}
