// One evaluation: which nodes are needed, computing them, storing what is kept.
//
// Nodes are claimed in one short section and computed outside it. An evaluation that needs a node another one
// has claimed waits for it. It never waits for a later one, since it claims all it needs at once: two
// evaluations cannot wait for each other.
#pragma once

#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/engine/engine.h"

namespace tessera::engine {

class Evaluation {
 public:
  explicit Evaluation(Engine& engine) : engine_(engine) {}

  ~Evaluation() {
    for (Node* node : given_up_) release(node);
  }

  Result<void> run(std::span<Node* const> asked);

 private:
  /// A node to compute.
  struct Step {
    Node* node = nullptr;
    bool asked = false;
    std::uint32_t uses = 0;  ///< by steps of this evaluation
    std::uint32_t uses_left = 0;
    /// Per operand the step that computes it; `stored` for one that has a value, and for a scalar. Other
    /// evaluations mark the same nodes in their walks, so this is learned under the lock.
    SmallVector<std::uint32_t, Node::inline_inputs> from = {};
    std::vector<Storage> results = {};
  };

  static constexpr std::uint32_t stored = 0xffffffff;

  void claim(std::span<Node* const> asked);
  void visit(Node* root);
  void unclaim();
  bool wait_for_others(std::unique_lock<std::mutex>& lock);
  void publish();
  void keep(Step& step);

  Result<void> compute();
  Result<void> compute(Step& step);
  Result<void> compute_call(Step& step);
  Result<void> compute_function(Step& step);
  Result<void> allocate_results(Step& step, std::vector<op::Array>& arrays);
  [[nodiscard]] const Storage& operand(const Step& step, std::size_t i) const;
  [[nodiscard]] std::uint32_t step_of(const Node* node) const;
  void used(Step& step);

  Engine& engine_;
  std::uint32_t epoch_ = 0;
  std::vector<Step> steps_;                  ///< inputs before what uses them
  std::vector<std::vector<Step>> finished_;  ///< freed outside the lock
  std::vector<NodeRef> others_;              ///< claimed by other evaluations
  std::vector<Node*> given_up_;              ///< references to release outside the lock
  EngineStatistics done_;
};

}  // namespace tessera::engine
