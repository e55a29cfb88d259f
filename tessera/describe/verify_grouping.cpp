#include "tessera/describe/verify_grouping.h"

#include <algorithm>
#include <functional>

#include "tessera/base/text.h"
#include "tessera/describe/function_writer.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Error wrong_grouping(std::string message) {
  return Error(ErrorCode::parse, "the groups are wrong: " + std::move(message));
}

class GroupingVerifier {
 public:
  GroupingVerifier(const Program& program, const std::vector<GroupSteps>& groups)
      : program_(program), groups_(groups), has_run_(groups.size()) {}

  Result<void> run(const std::vector<std::vector<Unit>>& units) {
    if (units.size() != program_.schedule.sequences.size())
      return wrong_grouping("not every sequence has units");
    for (std::uint32_t scope = 0; scope < units.size(); ++scope)
      TESSERA_TRY(sequence(program_.schedule.sequences[scope], scope, units[scope]));
    if (std::find(has_run_.begin(), has_run_.end(), false) != has_run_.end())
      return wrong_grouping("a group of ops never runs");
    return {};
  }

 private:
  Result<void> sequence(const Sequence& sequence, std::uint32_t scope, const std::vector<Unit>& units) {
    std::vector<std::uint32_t> unit_of(sequence.steps.size(), no_index);
    const auto take = [&](std::uint32_t step, std::uint32_t unit) {
      if (step >= unit_of.size() || unit_of[step] != no_index) return false;
      unit_of[step] = unit;
      return true;
    };
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      if (u > 0 && units[u].level < units[u - 1].level)
        return wrong_grouping("units are not sorted by their levels");
      if (!units[u].is_group) {
        if (!take(units[u].index, u)) return wrong_grouping("a step is in no sequence, or runs twice");
        continue;
      }
      TESSERA_TRY(group(scope, units[u].index));
      for (const std::uint32_t step : groups_[units[u].index].steps)
        if (!take(step, u)) return wrong_grouping("a step of a group is in no sequence, or runs twice");
    }
    for (std::uint32_t s = 0; s < unit_of.size(); ++s) {
      if (unit_of[s] == no_index) return wrong_grouping("a step is in no unit");
      for (const Wait& wait : sequence.steps[s].waits)
        if (unit_of[wait.step] != unit_of[s] && units[unit_of[wait.step]].level >= units[unit_of[s]].level)
          return wrong_grouping("a unit runs before one that it waits for");
    }
    return {};
  }

  Result<void> group(std::uint32_t scope, std::uint32_t index) {
    if (index >= groups_.size() || has_run_[index] || groups_[index].scope != scope)
      return wrong_grouping("a unit is no group of its sequence");
    has_run_[index] = true;
    const auto& steps = groups_[index].steps;
    const auto& all = program_.schedule.sequences[scope].steps;
    if (steps.empty() ||
        std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) != steps.end())
      return wrong_grouping("the steps of a group are not in order");
    for (const std::uint32_t step : steps) {
      if (step >= all.size()) return wrong_grouping("a step of a group is in no sequence");
      if (const auto why = why_no_statement(program_, all[step]))
        return wrong_grouping(cat("a group has ", *why));
    }
    return {};
  }

  const Program& program_;
  const std::vector<GroupSteps>& groups_;
  std::vector<bool> has_run_;
};

}  // namespace

Result<Grouping> tessera::description::verified_grouping(const Program& program,
                                                         std::vector<GroupSteps> groups,
                                                         std::vector<std::vector<Unit>> units) {
  TESSERA_TRY(GroupingVerifier(program, groups).run(units));
  Grouping out{.groups = {}, .units = std::move(units)};
  std::vector<std::uint32_t> all;
  for (GroupSteps& group : groups) {
    all.push_back(static_cast<std::uint32_t>(all.size()));
    out.groups.push_back({.scope = group.scope, .steps = std::move(group.steps)});
  }
  out.groups = TESSERA_TRY(rewrite_groups(program, out, all));
  return out;
}
