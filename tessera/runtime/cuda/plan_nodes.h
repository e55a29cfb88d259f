// What programs of plans are put together with: launches of a step, and whole programs, become nodes over
// addresses of the plan.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tessera/runtime/cuda/plan_program.h"

namespace tessera::runtime::cuda {

/// What a node waits for.
using NodeList = std::vector<std::uint32_t>;

/// Where the memory of a step's program lies, and what its nodes belong to.
struct StepPlace {
  plan::StepId step = 0;
  std::uint32_t graph = 0;
  std::vector<Address> inputs, results, scratch;
  ir::Span span = {};
};

/// Where the memory of a plan's program lies in another one, and what its nodes belong to there.
struct ProgramPlace {
  plan::StepId step = 0;
  std::uint32_t graph = 0;
  std::vector<Address> inputs, outputs;
  Address block = {}, scratch = {};
  std::span<const op::HostTensor> constants = {};  ///< of the plan
};

/// Whether numbers are arguments of kernels, or kernels read them from memory.
enum class Numbers : std::uint8_t { held, stored };

class PlanNodes {
 public:
  PlanNodes(PlanProgram& to, Numbers numbers) : to_(to), numbers_(numbers) {}

  /// Appends the launches of a step, one behind another, the first behind `after`. Returns what is to be
  /// waited for.
  [[nodiscard]] NodeList add(StepProgram program, const StepPlace& place, NodeList after);

  /// Appends a program. Returns what is to be waited for.
  [[nodiscard]] NodeList add(PlanProgram program, const ProgramPlace& place, const NodeList& after);

  /// Appends one node.
  std::uint32_t add(PlanNode node);

  /// One node in place of several: who passes many on to many would make the edges as many as the square of
  /// them.
  [[nodiscard]] NodeList joined(plan::StepId step, std::uint32_t graph, NodeList list);

 private:
  [[nodiscard]] PlanArgument bound(const Argument& argument, const StepPlace& place);
  [[nodiscard]] PlanArgument bound(const Memory& memory, const StepPlace& place);
  [[nodiscard]] SourceRef stored_numbers(const Launch& launch) const;
  [[nodiscard]] std::int64_t number_cell(const NumberCell& cell);
  [[nodiscard]] PlanNode node_of(const Launch& launch, const StepPlace& place);
  void note_reads(const PlanArgument& argument);

  PlanProgram& to_;
  Numbers numbers_;
  std::map<std::pair<std::uint32_t, ir::Dtype>, std::int64_t> number_cells_;  ///< where each lies
};

void sort_unique(NodeList& list);

}  // namespace tessera::runtime::cuda
