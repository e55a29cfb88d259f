// A device that a graph's buffers lie on and its nodes run on. It holds the schedule and launches it as one,
// or the host drives it step by step. This room knows no device.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::description {

struct HostExecutable;

/// What of an executable may be other than what a device holds.
struct ScheduleChanges {
  bool all = false;                    ///< also the steps themselves
  std::vector<std::uint32_t> nodes;    ///< whose calls are others
  std::vector<std::uint32_t> buffers;  ///< that lie elsewhere

  /// A number of a kernel.
  struct Number {
    std::uint32_t node = 0;
    std::uint32_t argument = 0;
  };
  std::vector<Number> numbers;  ///< of nodes that are the same otherwise
};

/// What a change took.
struct ScheduleUpdate {
  std::uint32_t patched = 0;     ///< nodes of the device's graph
  std::uint32_t recaptured = 0;  ///< those of them that were captured again
  bool is_remade = false;        ///< all of it was made anew
  std::string refusal = {};      ///< why, where a change in place was tried and refused
};

/// How long a node ran.
struct NodeTime {
  std::uint32_t node = 0;
  std::chrono::nanoseconds time{};
};

/// What of a launch is measured: nothing, when it is done, or each step as well.
enum class Measuring : std::uint8_t { nothing, total, steps };

/// A schedule that a device holds. One thread at a time.
class DeviceSchedule {
 public:
  virtual ~DeviceSchedule() = default;

  /// Holds what `executable` runs. A launch that is under way is not touched. After an error, which names the
  /// node or region, it holds what it held; one with code `unsupported` says why it cannot hold that.
  [[nodiscard]] virtual Result<ScheduleUpdate> follow(const HostExecutable& executable,
                                                      const ScheduleChanges& changes) = 0;
  /// Queues all steps at once. What they find wrong is an error of the node or region; it is waited for if
  /// there may be some. `times` gets those of nodes; of a region its first node has the time.
  [[nodiscard]] virtual Result<void> launch(Measuring measuring, std::vector<NodeTime>& times) = 0;
};

/// Thread-safe. What is queued runs in the order of the calls.
class GraphDevice {
 public:
  virtual ~GraphDevice() = default;

  /// "cuda:0", for messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// All the memory that it has; 0: not known.
  [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
  /// Memory of the device that is zero at first; it goes back when nobody holds it.
  [[nodiscard]] virtual Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> clear(std::byte* at, std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> copy_in(std::byte* to, std::span<const std::byte> from) = 0;
  /// `to` has the bytes when it returns.
  [[nodiscard]] virtual Result<void> copy_out(const std::byte* from, std::span<std::byte> to) = 0;
  /// Queues a call on arrays in its memory.
  [[nodiscard]] virtual Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results) = 0;
  /// Something to hold a schedule with, of none at first.
  [[nodiscard]] virtual Result<std::unique_ptr<DeviceSchedule>> make_schedule() = 0;
};
using GraphDeviceRef = std::shared_ptr<GraphDevice>;

}  // namespace tessera::description
