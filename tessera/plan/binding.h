// A plan with numbers for its sizes: where every value lies, and which calls only look at memory in another
// way. Made anew when sizes change, kept while they do not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/memory_layout.h"
#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Where the elements of a value begin.
enum class Where : std::uint8_t {
  input,     ///< in an input of the launch
  output,    ///< in memory that the launch gives for an output
  scratch,   ///< in the block of the plan
  constant,  ///< in a constant of the plan
  cell,      ///< in the cell of a number: parameters first, then sizes
};

struct Place {
  Where where = Where::scratch;
  std::uint32_t index = 0;  ///< which input, output buffer, constant or cell
  std::int64_t byte = 0;    ///< of scratch: where the value's own memory begins
  op::Layout layout;        ///< strides; the offset counts from there
};

/// How a runtime goes through the steps.
enum class Running : std::uint8_t {
  one_by_one,    ///< as they are listed
  side_by_side,  ///< a step waits only for those it depends on
};

/// Memory that the launch gives: the outputs that are not parts of inputs.
struct OutputBuffer {
  std::int64_t bytes = 0;
};

struct Binding {
  std::vector<std::int64_t> sizes;          ///< of the plan's symbols
  std::vector<Place> places;                ///< by value
  std::vector<bool> is_view;                ///< by step: it computes nothing
  std::vector<OutputBuffer> buffers;        ///< that a launch gives
  std::vector<std::int64_t> size_cells;     ///< the values of the cells that are sizes
  std::vector<op::Attributes> attributes;   ///< by step: with numbers for sizes
  std::vector<op::ValueTypes> input_types;  ///< by step
  std::vector<ValueId> roots;               ///< by value: the one whose memory it lies in
  std::vector<ValueId> temporaries;         ///< that have memory of their own in the plan's block
  std::vector<LiveRange> ranges;            ///< of each of them, with those that lie in the same place
  MemoryLayout memory;                      ///< of each of them

  [[nodiscard]] const Place& output(const Plan& plan, std::size_t i) const { return places[plan.outputs[i]]; }
};

/// Steps that follow each other and are run part by part, so that all of them are under way at the same time.
struct StepSpan {
  StepId first = 0, last = 0;

  bool operator==(const StepSpan&) const = default;
};

/// All of a binding but where temporaries lie: layouts, types, views, and from which step to which each of
/// them lives. `inputs` are the layouts of the inputs, with offset 0. Fails if a size is not known, negative
/// or too large, if two sizes differ that must be equal, or if an input has another shape.
[[nodiscard]] Result<Binding> find_lives(const Plan& plan, std::span<const std::int64_t> sizes,
                                         std::span<const op::Layout> inputs);

/// What a step of a span uses lives as long as the span. REQUIRES spans that do not overlap, ascending, and
/// steps that run one by one but for them.
void hold_over(std::span<const StepSpan> spans, Binding& binding);

/// Gives the temporaries their places, for lives that were found.
void assign_buffers(const Plan& plan, Binding& binding, Running running = Running::one_by_one);
/// The same by a layout of `binding.ranges` that is there.
void assign_buffers(Binding& binding, MemoryLayout layout);

/// Both: find_lives, then assign_buffers.
[[nodiscard]] Result<Binding> bind(const Plan& plan, std::span<const std::int64_t> sizes,
                                   std::span<const op::Layout> inputs, Running running = Running::one_by_one);

/// The layouts of inputs without gaps, for these sizes. Fails if one has too many elements.
[[nodiscard]] Result<std::vector<op::Layout>> contiguous_inputs(const Plan& plan,
                                                                std::span<const std::int64_t> sizes);

/// A line per temporary: how long it lives, and where it lies once that is known.
[[nodiscard]] std::string to_text(const Plan& plan, const Binding& binding);

}  // namespace tessera::plan
