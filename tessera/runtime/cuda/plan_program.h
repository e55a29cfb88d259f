// A plan as a list of launches with their order: what a graph is made of. Addresses that change from launch
// to launch are named, so that each place that holds one is known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/plan/binding.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// What an address counts from.
struct Address {
  enum class Base : std::uint8_t {
    input,     ///< of the launch, `index`
    output,    ///< of the launch, `index`
    block,     ///< the plan's memory for what it computes
    scratch,   ///< the memory of its steps
    constant,  ///< `index`
    cell,      ///< the numbers that are read from memory
    status,    ///< what its steps find wrong
  };

  Base base = Base::block;
  std::uint32_t index = 0;
  std::int64_t byte = 0;

  bool operator==(const Address&) const = default;
};

/// A value that a launch is given.
struct PlanArgument {
  enum class Kind : std::uint8_t { address, number, plain };

  Kind kind = Kind::plain;
  Address address = {};
  std::uint32_t slot = 0;  ///< of the plan
  ir::Dtype dtype = ir::Dtype::f32;
  std::uint64_t bits = 0;

  bool operator==(const PlanArgument&) const = default;
};

struct PlanNode {
  plan::StepId step = 0;
  bool is_join = false;  ///< does nothing: stands between many and many
  Launch::Kind kind = Launch::Kind::kernel;
  SourceRef source = {};
  std::shared_ptr<const Product> product = {};
  std::shared_ptr<const CapturedCall> captured = {};
  Extent3 grid = {}, block = {};
  std::uint32_t shared_bytes = 0;
  std::vector<PlanArgument> arguments = {};  ///< of a clear: where; of a copy: to, from
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> after = {};  ///< nodes before this one, ascending
};

struct PlanCheck {
  plan::StepId step = 0;
  IndexCheck check;
};

/// A number as kernels read it from memory.
struct NumberCell {
  std::uint32_t slot = 0;
  ir::Dtype dtype = ir::Dtype::f32;

  bool operator==(const NumberCell&) const = default;
};

/// A step that the host drives: everything listed before it is done before it, and what follows after.
struct DrivenStep {
  plan::StepId step = 0;
  std::uint32_t before = 0;  ///< the first node that comes after it
};

struct PlanProgram {
  std::vector<PlanNode> nodes;     ///< in an order in which they can run
  std::vector<DrivenStep> driven;  ///< regions, in their order
  std::uint64_t scratch_bytes = 0;
  std::vector<PlanCheck> checks;  ///< one per Status, side by side
  /// The bits below 16 of the addresses of inputs, then outputs, that the sources rely on.
  std::vector<std::uint8_t> alignments;
  bool reads_cells = false;
  bool reads_parameters = false;         ///< in the cells of the binding, as arrays
  std::vector<NumberCell> number_cells;  ///< behind the cells of the binding
};

/// More numbers than this are read from memory: patching the nodes that hold them would take longer than one
/// copy.
inline constexpr std::size_t most_patched_numbers = 8;

/// The program of a plan whose values lie where `binding` says, for inputs and outputs of these alignments.
/// An error names the op and its line.
[[nodiscard]] Result<PlanProgram> plan_program(const plan::Plan& plan, const plan::Binding& binding,
                                               plan::Running running,
                                               std::span<const std::uint8_t> alignments, Products products);

/// Where a value of the plan lies.
[[nodiscard]] Address address_of(const plan::Binding& binding, plan::ValueId value);

/// One line per node.
[[nodiscard]] std::string to_text(const PlanProgram& program);

}  // namespace tessera::runtime::cuda
