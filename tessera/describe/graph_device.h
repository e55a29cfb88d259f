// A device that a graph's buffers lie on and its nodes run on, driven by the host. This room knows none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tessera/op/call_info.h"

namespace tessera::description {

/// Thread-safe. What is queued runs in the order of the calls.
class GraphDevice {
 public:
  virtual ~GraphDevice() = default;

  /// "cuda:0", for messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Memory of the device that is zero at first; it goes back when nobody holds it.
  [[nodiscard]] virtual Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> clear(std::byte* at, std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> copy_in(std::byte* to, std::span<const std::byte> from) = 0;
  /// `to` has the bytes when it returns.
  [[nodiscard]] virtual Result<void> copy_out(const std::byte* from, std::span<std::byte> to) = 0;
  /// Queues a call on arrays in its memory.
  [[nodiscard]] virtual Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results) = 0;
};
using GraphDeviceRef = std::shared_ptr<GraphDevice>;

}  // namespace tessera::description
