// A launch with everything that the driver wants to know: functions, addresses, numbers. It is queued on a
// stream, or it is a node of a graph, which can be changed when an address or a number does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/blas.h"
#include "tessera/runtime/cuda/capture.h"
#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/module_cache.h"
#include "tessera/runtime/cuda/plan_program.h"

namespace tessera::runtime::cuda {

struct BoundLaunch {
  /// `join` does nothing: it waits for several and others wait for it. `conditional` runs its bodies, `event`
  /// notes the time.
  enum class Kind : std::uint8_t { kernel, clear, copy, product, captured, join, conditional, event };

  Kind kind = Kind::join;
  FunctionRef function = {};
  BlasProductRef product = {};
  std::shared_ptr<const CapturedCall> captured = {};
  /// The kernel itself waits for what it depends on, so that it may be started before that is done.
  bool waits_itself = false;
  Extent3 grid = {};
  Extent3 block = {};
  std::uint32_t shared_bytes = 0;
  /// Of a kernel: its arguments, each in the low bytes of its value. Of a clear: where. Of a copy: to, from.
  /// Of a product: a, b, c, its workspace, a bias (0 without one), an array to add. Of what is captured: its
  /// arguments. Of an event: its handle, which stays.
  std::vector<std::uint64_t> values = {};
  std::size_t bytes = 0;  ///< of a clear or a copy
  Conditional conditional = {};
  std::uint32_t condition = 0;  ///< that it depends on; of a kernel: that it sets, by its first argument
  std::uint32_t graph = 0;      ///< that it is a node of: 0, or the number of a body

  bool operator==(const BoundLaunch&) const = default;
};

/// The kind of a launch.
[[nodiscard]] BoundLaunch::Kind bound_kind(Launch::Kind kind);

/// REQUIRES, as all below, that the context is current.
[[nodiscard]] Result<void> queue(const Context& context, const BoundLaunch& launch, const Stream& stream);

/// What a library or the program queues for it, captured from `capturing`, a stream that nothing else uses.
/// Nothing of launches that are the driver's own.
[[nodiscard]] Result<std::optional<CapturedGraph>> captured_of(const Context& context,
                                                               const Stream& capturing,
                                                               const BoundLaunch& launch);

/// Adds it to a graph, behind others; what was captured of it becomes a child graph. Code `unsupported` if
/// the driver does not take it in the body of a conditional node.
[[nodiscard]] Result<CUgraphNode> add_node(const Context& context, CUgraph graph,
                                           std::span<const CUgraphNode> after, const BoundLaunch& launch,
                                           const std::optional<CapturedGraph>& captured);

/// Adds a conditional node to a graph, which its condition is of, and gives the graphs of its bodies. Code
/// `unsupported` if the driver does not take it.
struct AddedConditional {
  CUgraphNode node = nullptr;
  std::vector<CUgraph> bodies;
};
[[nodiscard]] Result<AddedConditional> add_conditional(const Context& context, CUgraph graph,
                                                       std::span<const CUgraphNode> after,
                                                       const Conditional& conditional,
                                                       CUgraphConditionalHandle condition);

/// Makes a node of the graph that `executable` was made from do this from the next launch on; it is of the
/// same kind. Launches that are under way are not touched. The driver may refuse: nothing has changed then.
[[nodiscard]] Result<void> set_node(const Context& context, CUgraphExec executable, CUgraphNode node,
                                    const BoundLaunch& launch, const std::optional<CapturedGraph>& captured);

}  // namespace tessera::runtime::cuda
