// Checks a schedule that validation did not make but somebody read from a file: what runs it relies on all of
// this. Nothing is ordered or placed anew.
#pragma once

#include "tessera/describe/op_group.h"
#include "tessera/describe/validate.h"

namespace tessera::description {

/// The program of a description and the schedule that was made of it. Fails, with all that is wrong with it,
/// for a description that is not valid, and with the first thing for a schedule that
///   - has not every step of every scope once, with the resets and zeros that are needed,
///   - lets a step begin before what an edge, a dependency or an access says must come first,
///   - gives memory to two buffers that hold something at once.
[[nodiscard]] Result<std::shared_ptr<const Program>> verified_program(
    std::shared_ptr<const Description> description, Schedule schedule);

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
