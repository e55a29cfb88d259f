// Validation of a whole description: every error and warning in one go, each with its block, node, parameter
// and place. Nothing after it finds an error of the user's.
//
// The passes, in order: names to positions (resolve.h), order of steps (program_order.h), types
// (check_types.h), kernels, memory (memory_plan.h). Each goes on past what the ones before found. Linear in
// the description up to sorting; nothing recurses.
#pragma once

#include <memory>
#include <optional>

#include "tessera/describe/kernels.h"
#include "tessera/describe/schedule.h"

namespace tessera::description {

struct Limits {
  /// Bytes of the device: external, graph and temporary buffers must fit together. 0: what the machine has.
  std::uint64_t device_memory = 0;
  std::size_t diagnostics = 1'000;  ///< kept; the others are counted
};

/// A description that can run: its graph by positions and its schedule. Immutable; refers to the description.
struct Program {
  std::shared_ptr<const Description> description;
  Graph graph;
  Schedule schedule;
};

struct Validation {
  Report report;
  std::shared_ptr<const Program> program;  ///< null if there are errors
};

/// Validates. Without `kernels`, what kernel nodes and captured nodes call is not looked up.
[[nodiscard]] Validation validate(std::shared_ptr<const Description> description, const KernelTable* kernels,
                                  const Limits& limits = {});

/// What kernel nodes and captured nodes call: that it exists, loads, and takes what the node gives.
void check_kernels(const Graph& graph, const KernelTable& kernels, Report& report);

/// That all memory together fits. Of a description with errors only what is live at once counts: what they
/// hide may allow more reuse.
void check_memory(const Description& description, const MemoryPlan& memory, const Limits& limits,
                  Report& report);

/// The warnings about a program that is valid otherwise.
void add_warnings(const Program& program, Report& report);

}  // namespace tessera::description
