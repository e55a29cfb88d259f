// Which value each external input of a pattern stands for.
//
// Where slots count, a node that is bound says at once what its external inputs are. Where they do not, the
// inputs that no node of the pattern takes are handed out once all nodes are bound, in every way that
// differs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/pattern/graph.h"
#include "tessera/pattern/match_plan.h"
#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

class ExternalBinding {
 public:
  /// `owner` says of each node of the graph whether it is in the match (not 0). REQUIRES all outlive this.
  ExternalBinding(const Graph& graph, const Pattern& pattern, const Variant& variant, const MatchPlan& plan,
                  const std::vector<std::uint32_t>& owner);

  /// Binds the externals in the slots of node i, whose image is `node` and not commutative. False if a name
  /// would stand for two values or a value is not what its external asks for; then release(i) undoes what was
  /// done.
  [[nodiscard]] bool bind_slots(std::uint32_t i, NodeId node);
  /// Forgets what bind_slots(i) bound.
  void release(std::uint32_t i);

  /// Told of the values by external; false ends the search.
  using Visitor = std::function<bool(std::span<const ValueId>)>;
  /// Asked before every further step of the search; true ends it.
  using StopQuestion = std::function<bool()>;
  /// Calls `visit` once for each different way to bind the externals. REQUIRES all nodes are bound, to
  /// `images`.
  void for_each_binding(std::span<const NodeId> images, const Visitor& visit,
                        const StopQuestion& should_stop);

 private:
  /// A slot of a commutative node that takes a named external, and where its candidates are in loose_.
  struct Slot {
    ExternalSlot plan;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  [[nodiscard]] bool admits(const PatternExternal& external, ValueId value) const;
  [[nodiscard]] bool is_outside(ValueId value) const;
  bool set(std::uint32_t external, ValueId value, std::vector<std::uint32_t>& trail);
  [[nodiscard]] bool prepare(std::span<const NodeId> images);
  [[nodiscard]] bool prepare_commutative(std::uint32_t i, NodeId image);
  void hand_out(const Visitor& visit, const StopQuestion& should_stop);
  [[nodiscard]] std::size_t first_choice(std::size_t depth) const;
  bool advance(std::size_t depth);
  [[nodiscard]] bool leaves_enough(const Slot& slot, std::size_t at) const;
  void retreat(std::size_t depth);
  [[nodiscard]] bool keeps_order() const;

  const Graph& graph_;
  const Pattern& pattern_;
  const Variant& variant_;
  const MatchPlan& plan_;
  const std::vector<std::uint32_t>& owner_;
  std::vector<ValueId> values_;                     ///< by external
  std::vector<std::vector<std::uint32_t>> trails_;  ///< by node: the externals that its slots bound
  std::vector<Slot> slots_;
  std::vector<ValueId> loose_;  ///< inputs of commutative nodes that no node of the pattern takes, of each
                                ///< node ascending
  std::vector<bool> is_taken_;  ///< by index in loose_
  std::vector<std::size_t> choices_;  ///< by slot: the index in loose_, or one past its end
  std::vector<std::vector<std::uint32_t>> slot_trails_;
};

}  // namespace tessera::pattern
