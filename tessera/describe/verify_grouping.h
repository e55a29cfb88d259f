// Checks groups of op nodes that somebody read from a file, of a program that was verified.
#pragma once

#include "tessera/describe/op_group.h"

namespace tessera::description {

/// A group as a file has it; what it computes follows from its steps.
struct GroupSteps {
  std::uint32_t scope = 0;
  std::vector<std::uint32_t> steps;

  static constexpr auto fields() {
    return std::tuple{usual("scope", &GroupSteps::scope), usual("steps", &GroupSteps::steps)};
  }
};

/// The grouping that these are. Fails if a step is left out or runs twice, if a unit runs before one that it
/// waits for, or if something in a group is no op.
[[nodiscard]] Result<Grouping> verified_grouping(const Program& program, std::vector<GroupSteps> groups,
                                                 std::vector<std::vector<Unit>> units);

}  // namespace tessera::description
