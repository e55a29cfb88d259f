// Steps of one block that can run as one program, so that a compiler sees them together: op nodes, and
// regions of op nodes.
//
// A launch or a branch is a list of units: groups of such steps, and all others one by one. Units of one
// level do not wait for each other. Which steps are one group follows from the waits alone, so that any order
// the schedule allows stays allowed.
#pragma once

#include <span>
#include <vector>

#include "tessera/describe/validate.h"
#include "tessera/ir/function.h"

namespace tessera::description {

/// A number of a node, which is a parameter of the group's function.
struct GroupNumber {
  std::uint32_t node = 0;
  std::uint32_t pin = 0;
};

struct OpGroup {
  std::uint32_t scope = 0;           ///< the sequence that it is a part of
  std::vector<std::uint32_t> steps;  ///< of that, in its order
  std::vector<std::uint32_t> nodes;  ///< of these steps, also inside of regions
  /// Of what the nodes read from outside, giving what others see of what they write. The same nodes on other
  /// buffers have an equal function.
  ir::FunctionRef function;
  std::vector<std::uint32_t> inputs;   ///< buffers, by parameter
  std::vector<std::uint32_t> results;  ///< buffers, by result
  std::vector<GroupNumber> numbers;    ///< by slot
};

struct Unit {
  bool is_group = false;
  std::uint32_t index = 0;  ///< the group, or the step of the sequence
  std::uint32_t level = 0;

  static constexpr auto fields() {
    return std::tuple{usual("is_group", &Unit::is_group), usual("index", &Unit::index),
                      usual("level", &Unit::level)};
  }
};

struct Grouping {
  std::vector<OpGroup> groups;
  std::vector<std::vector<Unit>> units;  ///< by sequence, in an order that respects all waits
};

/// Every op node is in a group, except those whose results differ from call to call; a region in which all
/// nodes are ops is part of a group as a whole.
[[nodiscard]] Result<Grouping> group_ops(const Program& program);

/// Groups of a grouping, by position, for a program in which only ops that nodes call are others.
[[nodiscard]] Result<std::vector<OpGroup>> rewrite_groups(const Program& program, const Grouping& grouping,
                                                          std::span<const std::uint32_t> groups);

/// The whole launch as one function of buffers, with their names.
struct Launch {
  ir::FunctionRef function;            ///< of the inputs, and then the states
  std::vector<std::uint32_t> inputs;   ///< external buffers
  std::vector<std::uint32_t> results;  ///< external and graph buffers
  /// Graph buffers, by position among the results: what one launch gives is what the next one takes. Zero at
  /// first.
  std::vector<std::uint32_t> states;
};

/// Fails with code `unsupported`, saying which, if a step is neither an op nor a region of ops: a host
/// function is none, and only those append.
[[nodiscard]] Result<Launch> whole_launch(const Program& program);

/// Every step is a unit.
[[nodiscard]] Grouping one_by_one(const Program& program);

}  // namespace tessera::description
