// The memory of a program on the host: what the caller bound, graph buffers, the piece that temporary buffers
// share, and the counters of append buffers.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "tessera/describe/graph_device.h"
#include "tessera/describe/validate.h"

namespace tessera::description {

/// What the caller gave for external buffers, by name.
using Bindings = std::map<std::string, std::span<std::byte>, std::less<>>;

/// On a device the counter of an append buffer is followed by the most that it had before it was reset.
inline constexpr std::size_t device_counter_bytes = 2 * sizeof(std::uint64_t);

/// Graph buffers and counters are shared by the plans that follow each other, so that their content goes on.
class HostMemory {
 public:
  /// Allocates for a program. A graph buffer of the same name, dtype and shape is taken over from `previous`;
  /// others are zero. Checks the bindings: large enough, aligned, and no two that overlap where one is
  /// written. A buffer without a binding has a null pointer.
  /// All of it lies on `device`, if there is one: what is bound too.
  static Result<HostMemory> allocate(const Program& program, const Bindings& bindings,
                                     const HostMemory* previous, GraphDeviceRef device);

  [[nodiscard]] std::byte* data(std::uint32_t buffer) const { return data_[buffer]; }
  [[nodiscard]] AppendCounter* counter(std::uint32_t buffer) const { return counters_[buffer].get(); }
  /// Where the counter of an append buffer on a device lies.
  [[nodiscard]] std::byte* device_counter(std::uint32_t buffer) const {
    return device_counters_.empty() ? nullptr : device_counters_[buffer].get();
  }
  [[nodiscard]] std::span<const std::uint32_t> append_buffers() const { return append_buffers_; }
  [[nodiscard]] GraphDevice* device() const { return device_.get(); }
  /// Bytes that were newly allocated.
  [[nodiscard]] std::uint64_t allocated() const { return allocated_; }

  /// Points external buffers elsewhere. Nothing changes on failure.
  Result<void> rebind(const Program& program, const Bindings& bindings);

 private:
  Result<void> take_own(const Program& program, const HostMemory* previous);
  Result<void> take_counters(const Program& program);
  [[nodiscard]] Result<op::HostTensor> zeros(Dtype dtype, const Extents& shape) const;

  std::vector<std::byte*> data_;                             // by buffer
  std::vector<std::shared_ptr<AppendCounter>> counters_;     // by buffer
  std::vector<std::shared_ptr<std::byte>> device_counters_;  // by buffer; empty on the host
  std::vector<std::uint32_t> append_buffers_;
  GraphDeviceRef device_;                                   // null: the host
  std::map<std::string, op::HostTensor, std::less<>> own_;  // graph buffers, by name
  op::HostTensor shared_;
  std::uint64_t allocated_ = 0;
};

}  // namespace tessera::description
