#include "tessera/onnx/last_uses.h"

#include <unordered_set>

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// Calls `f` with every name that a node and the graphs in its attributes use or define.
template <class F>
void for_each_name(const Node& node, F&& f) {
  for (const std::string& name : node.inputs) f(name);
  for (const std::string& name : node.outputs) f(name);
  std::vector<const Node*> todo{&node};
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    for (const Attribute& attribute : at->attributes) {
      const auto* graphs = std::get_if<std::vector<Graph>>(&attribute.value);
      if (graphs == nullptr) continue;
      for (const Graph& graph : *graphs) {
        for (const ValueInfo& output : graph.outputs) f(output.name);
        for (const Node& inner : graph.nodes) {
          for (const std::string& name : inner.inputs) f(name);
          todo.push_back(&inner);
        }
      }
    }
  }
}

}  // namespace

LastUses tessera::onnx::find_last_uses(std::span<const Node> nodes,
                                       std::span<const std::string_view> outputs) {
  LastUses out(nodes.size());
  std::unordered_set<std::string_view> used_later(outputs.begin(), outputs.end());
  for (std::size_t i = nodes.size(); i-- > 0;)
    for_each_name(nodes[i], [&](std::string_view name) {
      if (!name.empty() && used_later.insert(name).second) out[i].push_back(name);
    });
  return out;
}
