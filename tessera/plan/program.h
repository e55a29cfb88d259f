// Program: plans that run one after another. Most programs are one plan. Where a size depends on data, the
// program is cut: the host learns the number from what one part computed, and the parts behind it have it as
// a size symbol.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Where a value comes from: an output of an earlier part, or an input of the program.
struct Source {
  static constexpr std::uint32_t caller = 0xffffffff;  ///< as `part`: an input of the program

  std::uint32_t part = caller;
  std::uint32_t index = 0;

  bool operator==(const Source&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("part", &Source::part), usual("index", &Source::index)};
  }
};

/// A size that the host reads from a value of one i64.
struct LearnedSize {
  Source from;
  ir::Span at;  ///< what computes it

  static constexpr auto fields() {
    return std::tuple{usual("from", &LearnedSize::from), ignore("at", &LearnedSize::at)};
  }
};

/// The symbols of its plan are those of the program, then the sizes it learned.
struct Part {
  PlanRef plan;
  std::vector<Source> inputs;
  std::vector<LearnedSize> learned;

  static constexpr auto fields() {
    return std::tuple{usual("inputs", &Part::inputs), usual("learned", &Part::learned)};
  }
};

struct Program {
  std::vector<Ref<ir::Var>> dims;  ///< sizes that follow from the inputs
  std::vector<op::ValueType> inputs;
  std::vector<Part> parts;  ///< at least one
  std::vector<Source> outputs;
  std::vector<op::Dtype> parameters;  ///< the dtype of each slot; a part may have fewer

  static constexpr auto fields() {
    return std::tuple{usual("dims", &Program::dims), usual("inputs", &Program::inputs),
                      usual("parts", &Program::parts), usual("outputs", &Program::outputs),
                      usual("parameters", &Program::parameters)};
  }
  /// The type of what a source names.
  [[nodiscard]] const op::ValueType& type_of(const Source& source) const;
};

/// The program that is this plan.
[[nodiscard]] Program program_of(PlanRef plan);

/// A line per size that depends on data: where the program is cut for it, or that it is held by an upper
/// bound with a count beside it. Empty if there is none.
[[nodiscard]] std::vector<std::string> data_dependent_sizes(const Program& program);

}  // namespace tessera::plan
