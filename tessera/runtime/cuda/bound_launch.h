// A launch with everything that the driver wants to know: functions, addresses, numbers. It is queued on a
// stream, or it is a node of a graph, which can be changed when an address or a number does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/blas.h"
#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/module_cache.h"

namespace tessera::runtime::cuda {

struct BoundLaunch {
  /// `join` does nothing: it waits for several and others wait for it. `event` notes the time.
  enum class Kind : std::uint8_t { kernel, clear, copy, product, captured, join, event };

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

  bool operator==(const BoundLaunch&) const = default;
};

/// The kind of a launch.
[[nodiscard]] BoundLaunch::Kind bound_kind(Launch::Kind kind);

/// REQUIRES, as all below, that the context is current.
[[nodiscard]] Result<void> queue(const Context& context, const BoundLaunch& launch, const Stream& stream);

/// Adds it to a graph, behind others. What libraries do is captured from `capturing`, a stream that nothing
/// else uses, and becomes a child graph.
[[nodiscard]] Result<CUgraphNode> add_node(const Context& context, const Stream& capturing, CUgraph graph,
                                           std::span<const CUgraphNode> after, const BoundLaunch& launch);

/// Makes a node of the graph that `executable` was made from do this from the next launch on; it is of the
/// same kind. Launches that are under way are not touched. The driver may refuse: nothing has changed then.
[[nodiscard]] Result<void> set_node(const Context& context, const Stream& capturing, CUgraphExec executable,
                                    CUgraphNode node, const BoundLaunch& launch);

}  // namespace tessera::runtime::cuda
