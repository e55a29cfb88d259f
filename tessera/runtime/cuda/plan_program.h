// A plan as a list of launches with their order: what a graph is made of. Addresses that change from launch
// to launch are named, so that each place that holds one is known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/plan/binding.h"
#include "tessera/runtime/cuda/body_plans.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/library_product.h"

namespace tessera::runtime::cuda {

/// What an address counts from.
struct Address {
  enum class Base : std::uint8_t {
    input,     ///< of the launch, `index`
    output,    ///< of the launch, `index`
    block,     ///< the plan's memory for what it computes
    scratch,   ///< the memory of its steps
    constant,  ///< `index`; those of the plan first
    cell,      ///< the scalar parameters, as arrays
    size,      ///< numbers that follow from the sizes
    number,    ///< scalar parameters as kernels read them
    status,    ///< what its steps find wrong
  };

  Base base = Base::block;
  std::uint32_t index = 0;
  std::int64_t byte = 0;

  bool operator==(const Address&) const = default;
};

/// A value that a launch is given. A handle is that of the condition that the node sets.
struct PlanArgument {
  enum class Kind : std::uint8_t { address, number, plain, handle };

  Kind kind = Kind::plain;
  Address address = {};
  std::uint32_t slot = 0;  ///< of the plan
  ir::Dtype dtype = ir::Dtype::f32;
  std::uint64_t bits = 0;

  bool operator==(const PlanArgument&) const = default;
};

/// A node with graphs in it, its bodies. A kernel that stands before it says which of them runs, or whether
/// the only one does; in the latter, the last node says whether it runs again.
struct Conditional {
  enum class Kind : std::uint8_t { none, choice, loop };

  Kind kind = Kind::none;
  std::uint32_t first_body = 0;  ///< bodies are numbered one after another
  std::uint32_t body_count = 0;

  bool operator==(const Conditional&) const = default;
};

struct PlanNode {
  plan::StepId step = 0;
  bool is_join = false;  ///< does nothing: stands between many and many
  Conditional conditional = {};
  std::uint32_t condition = 0;  ///< the number, from 1, of the condition it depends on or sets
  std::uint32_t graph = 0;      ///< that it is a node of: 0, or the number of a body, from 1
  Launch::Kind kind = Launch::Kind::kernel;
  SourceRef source = {};
  std::shared_ptr<const Product> product = {};
  std::shared_ptr<const CapturedCall> captured = {};
  Extent3 grid = {}, block = {};
  std::uint32_t shared_bytes = 0;
  std::vector<PlanArgument> arguments = {};  ///< of a clear: where; of a copy: to, from
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> after = {};  ///< nodes of its graph before this one, ascending
};

struct PlanCheck {
  ir::Span span;  ///< of the step
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
  std::string why = {};
};

struct PlanProgram {
  std::vector<PlanNode> nodes;               ///< in an order in which they can run
  std::vector<DrivenStep> driven;            ///< regions, in their order
  std::uint32_t bodies = 0, conditions = 0;  ///< their numbers go so far
  std::uint64_t scratch_bytes = 0;
  std::uint32_t plan_constants = 0;
  std::vector<op::HostTensor> constants;  ///< of bodies, behind those of the plan
  std::vector<std::int64_t> sizes;        ///< one per cell
  std::vector<PlanCheck> checks;          ///< one per Status, side by side
  /// The bits below 16 of the addresses of inputs, then outputs, that the sources rely on.
  std::vector<std::uint8_t> alignments;
  bool reads_cells = false;              ///< parameters, sizes or numbers
  bool reads_parameters = false;         ///< as arrays
  std::vector<NumberCell> number_cells;  ///< one per cell
};

/// More numbers than this are read from memory: patching the nodes that hold them would take longer than one
/// copy.
inline constexpr std::size_t most_patched_numbers = 8;

/// How programs of plans are made.
struct ProgramOptions {
  plan::Running running = plan::Running::side_by_side;
  /// Who computes the products of a plan. Asked only when it is made: a library takes long to open.
  std::function<Products(const plan::Plan&)> products = [](const plan::Plan&) {
    return Products::by_kernels;
  };
  DeviceLimits limits = {};
  /// What products that the library computes need beside their operands.
  WorkspaceOf workspace = [](const Product&) { return product_workspace; };
  /// For regions as nodes; without it the host drives them, for a reason.
  BodyPlans* bodies = nullptr;
  std::string without_bodies = {};
  unsigned depth = 0;  ///< regions around the plan
};

/// The program of a plan whose values lie where `binding` says, for inputs and outputs of these alignments.
/// An error names the op and its line.
[[nodiscard]] Result<PlanProgram> plan_program(const plan::Plan& plan, const plan::Binding& binding,
                                               std::span<const std::uint8_t> alignments,
                                               const ProgramOptions& options);

/// Where a value of the plan lies.
[[nodiscard]] Address address_of(const plan::Plan& plan, const plan::Binding& binding, plan::ValueId value);

/// Stands for an address that is not known yet: far from all others, so that nothing overlaps
/// (placeholder.h).
[[nodiscard]] std::byte* placeholder(const Address& address);

/// One line per node.
[[nodiscard]] std::string to_text(const PlanProgram& program);

}  // namespace tessera::runtime::cuda
