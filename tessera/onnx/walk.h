// Walks the nodes of a model in order and writes what they mean into a target.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/onnx/budget.h"
#include "tessera/onnx/last_uses.h"
#include "tessera/onnx/mapping.h"

namespace tessera::onnx {

/// Called before each node, also those of bodies and functions; `position` counts the nodes of the model's
/// own graph that were begun, this one or the one around it included.
using NodeObserver = std::function<void(const Node& node, std::size_t position)>;

class Walk final : public BodyRunner {
 public:
  Walk(const Model& model, Target& target, Budget& budget, NodeObserver observer = {})
      : model_(model), target_(target), budget_(budget), observer_(std::move(observer)) {}

  /// The outputs of the model's graph. Errors name file and node.
  [[nodiscard]] Result<Items> run_model(Items inputs);

  Result<Items> run_body(const Graph& body, Items inputs) override;
  const Limits& limits() const override { return budget_.limits(); }

 private:
  using Scope = std::unordered_map<std::string_view, Item>;
  /// A function that is being walked: it sees its own scopes only.
  struct Frame {
    const Opsets& opsets;
    std::vector<Scope> scopes;
    CallAttributes attributes;
  };

  [[nodiscard]] Scope& scope() { return frames_.back().scopes.back(); }
  void bind(std::string_view name, Item item);
  void unbind(std::string_view name);
  void close_scope(const Items& results);
  const LastUses& last_uses(std::span<const Node> nodes, std::span<const std::string_view> outputs);

  Result<void> bind_initializers(const Graph& graph);
  Result<void> walk_nodes(std::span<const Node> nodes, std::span<const std::string_view> outputs);
  Result<void> walk_node(const Node& node);
  Result<Items> results_of(const Node& node, std::span<const Item> inputs);
  Result<Items> call_function(const LocalFunction& function, const Node& node, std::span<const Item> inputs);
  Result<Item> find(std::string_view name) const;

  const Model& model_;
  Target& target_;
  Budget& budget_;
  NodeObserver observer_;
  std::vector<Frame> frames_;
  std::unordered_map<const Node*, LastUses> last_uses_;  ///< by the first node of a graph or function
  std::uint32_t line_ = 0;  ///< of the node of the model's own graph that is being walked
};

}  // namespace tessera::onnx
