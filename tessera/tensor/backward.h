// One way back from a tensor to those it depends on, by the gradients of the cards. What it records are nodes
// like any others.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "tessera/autodiff/rules.h"
#include "tessera/ir/function.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/gradient_script.h"
#include "tessera/tensor/node_builder.h"

namespace tessera::detail {

/// What was given for one custom gradient.
struct CustomRule : engine::CustomGradient {
  GradientRule rule;
  std::string name;           ///< of the op that has the rule
  std::size_t arguments = 0;  ///< inputs behind the value that are arguments; captures of the rule follow
  // The same for the traced function around it, if there is one: the call, which gives its first parameter
  // (the value, the arguments, the captures), and its gradient, which also takes that of the value.
  ir::FunctionRef function;
  ir::FunctionRef gradient;
  autodiff::Rules rules;  ///< about functions inside the gradient
};

/// The gradients a rule gave, checked. An empty one is an empty tensor. `here` is where the op was called.
[[nodiscard]] std::vector<Tensor> apply_rule(const CustomRule& custom, const std::vector<Tensor>& xs,
                                             const Tensor& y, const Tensor& dy, Here here);

/// A handle to a node.
[[nodiscard]] Tensor tensor_of(engine::NodeRef node);

/// What lies behind a tensor whose gradient is asked for.
enum class Targets : bool {
  pass_on,  ///< counts too: gradients flow through targets to other targets
  cut       ///< does not: each target is held fixed for the others
};

class Backward {
 public:
  Backward(const std::shared_ptr<engine::Engine>& engine, Here here, Targets targets = Targets::pass_on)
      : builder_(engine, caller_of(here)), here_(here), cut_(targets == Targets::cut) {}

  /// Finds what lies between `y` and the targets, or between `y` and all leaves that need gradients, if there
  /// are none.
  void find(engine::Node* y, std::span<engine::Node* const> targets);
  /// Goes back from `y`, whose gradient is `seed`.
  void run(engine::Node* y, op::Value seed);

  /// The gradient of `y`: `dy`, or one if y has one element.
  [[nodiscard]] op::Value seed_of(const Tensor& y, const Tensor& dy);
  /// What arrived at a node; empty if nothing did.
  [[nodiscard]] op::Value gradient(engine::Node* node);
  [[nodiscard]] engine::NodeRef node(op::Value value) { return builder_.node(value); }
  /// The leaves that need gradients, in the order they were found.
  [[nodiscard]] const std::vector<engine::Node*>& leaves() const { return leaves_; }

 private:
  using ResultGradients = SmallVector<op::Value, 1>;  ///< most calls have one result
  struct Known {
    bool is_target = false;
    bool visited = false;
    bool leads = false;         ///< to a target or a leaf
    bool passes_on = false;     ///< to its inputs
    ResultGradients gradients;  ///< per result
    op::Value at_target;        ///< of a target that is held fixed
  };
  struct Visited {
    engine::Node* node;
    Known* known;
  };

  [[nodiscard]] bool is_leaf(const engine::Node* node) const;
  [[nodiscard]] bool is_fixed(engine::Node* node) const;
  [[nodiscard]] bool leads_back(engine::Node* input) const;
  void visit(engine::Node* root);
  void leave(Visited at);
  void add(engine::Node* node, op::Value gradient);
  void through(engine::Node* node, const ResultGradients& gradients);
  void through_call(engine::Node* node, const ResultGradients& gradients);
  bool record_again(engine::Node* node, const GradientQuestion& question, op::Value dy);
  op::Values apply_card(engine::Node* node, ResultGradients gradients, const GradientQuestion* question);
  [[nodiscard]] std::optional<GradientQuestion> question_of(engine::Node* node,
                                                            const ResultGradients& gradients);
  void through_custom(engine::Node* node, op::Value gradient);
  void through_function(engine::Node* node, ResultGradients gradients);
  op::Value value_of(engine::Node* node);
  op::Values results_of(engine::Node* call);

  NodeBuilder builder_;
  Here here_;
  bool cut_;
  bool any_leaf_ = false;
  std::unordered_map<engine::Node*, Known> of_;
  std::unordered_map<engine::Node*, op::Value> values_;
  std::vector<Visited> order_;
  std::vector<engine::Node*> leaves_;
  std::vector<NodeBuilder::WrittenCall> written_;  ///< by the rule that runs
};

}  // namespace tessera::detail
