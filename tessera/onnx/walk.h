// Walks the nodes of a model in order and writes what they mean into a target.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/onnx/mapping.h"

namespace tessera::onnx {

class Walk final : public BodyRunner {
 public:
  Walk(const Model& model, Target& target, const Limits& limits)
      : model_(model), target_(target), limits_(limits) {}

  /// The outputs of the model's graph. Errors name file and node.
  [[nodiscard]] Result<Items> run_model(Items inputs);

  Result<Items> run_body(const Graph& body, Items inputs) override;
  const Limits& limits() const override { return limits_; }

 private:
  using Scope = std::unordered_map<std::string_view, Item>;
  /// A function that is being walked: it sees its own scopes only.
  struct Frame {
    const Opsets& opsets;
    std::vector<Scope> scopes;
    CallAttributes attributes;
  };

  Result<void> bind_initializers(const Graph& graph);
  Result<void> walk_nodes(std::span<const Node> nodes);
  Result<void> walk_node(const Node& node);
  Result<Items> results_of(const Node& node, std::span<const Item> inputs);
  Result<Items> call_function(const LocalFunction& function, const Node& node, std::span<const Item> inputs);
  Result<Item> find(std::string_view name) const;
  Result<Items> outputs_of(const Graph& graph) const;

  const Model& model_;
  Target& target_;
  const Limits& limits_;
  std::vector<Frame> frames_;
  std::int64_t steps_ = 0;
  std::uint32_t line_ = 0;  ///< of the node of the model's own graph that is being walked
};

}  // namespace tessera::onnx
