// What an evaluation has to compute: every node below those that are asked for that has no value yet,
// operands before their users, and which of them hang together.
//
// The order is depth first from the nodes that were asked for, in the order of the call, operands by slot. It
// depends on structure alone, and so does its restriction to one component: it is the canonical order of the
// plan key (plan_key.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/engine/node.h"
#include "tessera/stream/buffer.h"

namespace tessera::engine {

class Needed {
 public:
  /// Stands where an operand is no step: it has a value, or is a number.
  static constexpr std::uint32_t stored = 0xffffffff;
  /// Why a step's result is kept. `spare`: somebody holds a result of the call that nobody asked for, and
  /// that takes little to compute when somebody does; it is kept where it is computed anyway.
  enum Keep : std::uint8_t { dropped = 0, held = 1, asked = 2, spare = 3 };

  /// Walks, and claims the steps; if it throws, none is. Marks the nodes with `epoch`. REQUIRES the engine's
  /// lock.
  void collect(std::span<Node* const> roots, std::uint32_t epoch);
  /// Others may claim the steps again. REQUIRES the engine's lock.
  void unclaim() {
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].node->claimed = false;
  }
  /// Forgets everything, keeps the memory.
  void clear();

  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  [[nodiscard]] Node& node(std::uint32_t step) const { return *steps_[step].node; }
  /// Per operand of a step, the step that computes it. REQUIRES that the node still has its inputs.
  [[nodiscard]] std::span<const std::uint32_t> from(std::uint32_t step) const {
    return {from_.begin() + steps_[step].first_from, steps_[step].node->input_count};
  }
  /// How many operands of steps it is.
  [[nodiscard]] std::uint32_t uses(std::uint32_t step) const { return steps_[step].uses; }
  [[nodiscard]] Keep keep(std::uint32_t step) const { return static_cast<Keep>(keep_[step]); }
  /// Whether a plan has to give the results of a step.
  [[nodiscard]] bool must_keep(std::uint32_t step) const { return keep(step) == held || keep(step) == asked; }
  /// The steps that were asked for, in the order of the call, each once.
  [[nodiscard]] std::span<const std::uint32_t> asked_steps() const { return asked_; }

  /// The steps of each component, ascending; components in the order of their first steps. Empty if there is
  /// only one.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& components();

  /// Nodes that other evaluations are computing.
  std::vector<NodeRef> others;

 private:
  struct Step {
    Node* node;
    std::uint32_t uses;        ///< operands of steps that it is
    std::uint32_t first_from;  ///< where its operands begin
  };
  struct Frame {
    Node* node;
    std::uint32_t next;  ///< operand to look at
  };

  void walk(Node* root, std::uint32_t epoch);
  [[nodiscard]] bool enter(Node* node, std::uint32_t epoch);
  [[nodiscard]] bool enter_claimed_or_result(Node* node);
  void add_step(Node* node);
  void leave_lazy(std::uint32_t step);
  void hold_for_gradient(std::uint32_t step);

  stream::Buffer<Step> steps_;
  stream::Buffer<std::uint32_t> from_;
  std::vector<std::uint8_t> keep_;
  std::vector<std::uint32_t> asked_;
  std::vector<std::vector<std::uint32_t>> components_;
  stream::Buffer<Frame> stack_;
};

}  // namespace tessera::engine
