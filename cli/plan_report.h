// What `tessera explain` says of a plan: its tiles and what lost against them, the proof, its memory, and
// what a change would take.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/base/result.h"
#include "tessera/compile/plan_function.h"
#include "tessera/runtime/device.h"

namespace tessera::cli {

/// A tile of the program that the plan has as one step.
struct ExplainedTile {
  std::string kind;              ///< "region", or the device's name for it
  std::vector<std::string> ops;  ///< with the names of their results
  double cost = 0;               ///< predicted nanoseconds
  double moving = 0;             ///< of these, to read and write
  double computing = 0;          ///< and for arithmetic; the longer hides most of the other
  double one_by_one = 0;         ///< of the same ops as steps of their own
  struct Loser {
    std::vector<std::string> ops;
    double cost = 0;
    double one_by_one = 0;
  };
  std::vector<Loser> losers;  ///< candidates that overlap with it and were not taken, the largest first
};

/// What a plan is, for people and programs.
struct PlanReport {
  plan::PlanRef plan;
  plan::Binding binding;  ///< the device's own, for the sizes in it
  std::vector<ExplainedTile> tiles;
  pattern::Tiling tiling;
  std::vector<std::uint32_t> levels;  ///< by step
};

/// What was planned, with its candidates kept, and the memory that the device takes for it. Its tiling is
/// moved into the report.
[[nodiscard]] Result<PlanReport> report_on(compiler::Planned& planned, runtime::Device& device,
                                           std::span<const std::int64_t> sizes);

[[nodiscard]] std::string plan_text(const PlanReport& report);
/// The members "tiles", "certificate", "steps", "memory", "tiers" of an object that is being written.
void write_plan_report(JsonWriter& json, const PlanReport& report);

}  // namespace tessera::cli
