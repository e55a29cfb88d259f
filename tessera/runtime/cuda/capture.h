// What is queued on a stream, captured as a graph: calls of libraries and of the program.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// A graph that is given back.
class CapturedGraph {
 public:
  CapturedGraph(const Driver& driver, CUgraph handle) : driver_(&driver), handle_(handle) {}
  CapturedGraph(CapturedGraph&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  CapturedGraph& operator=(CapturedGraph&&) = delete;
  ~CapturedGraph() {
    if (handle_ != nullptr) driver_->cuGraphDestroy(handle_);
  }
  [[nodiscard]] CUgraph handle() const { return handle_; }

 private:
  const Driver* driver_;
  CUgraph handle_;
};

/// What `queue` queues on the stream, which nothing else uses. Other threads may do as they like meanwhile.
/// After an error the stream captures no more. REQUIRES, as what follows, that the context is current.
[[nodiscard]] Result<CapturedGraph> capture(const Context& context, const Stream& stream,
                                            const std::function<Result<void>()>& queue);

/// The same of a call of the program, with pointers and numbers in `values`. What its function throws is an
/// error that names the op and its line, as is what must not be done while a stream is captured.
[[nodiscard]] Result<CapturedGraph> capture_call(const Context& context, const Stream& stream,
                                                 const CapturedCall& call,
                                                 std::span<const std::uint64_t> values);

/// Captures it on a stream of its own and launches it once: what is an error in a plan is one here.
[[nodiscard]] Result<void> queue_captured(const Context& context, const CapturedCall& call,
                                          std::span<const std::uint64_t> values, const Stream& stream);

}  // namespace tessera::runtime::cuda
