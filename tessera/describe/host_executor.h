// Runs a schedule on the host: groups of op nodes by the programs that were made of them, single op nodes by
// the cards' reference kernels, kernel nodes by their functions, captured nodes by the calls they recorded.
// A schedule on a device is launched by that as one; where it cannot be, its steps are queued one by one.
//
// May know: the schedule, kernels, host memory. Must not know: where a description came from, how it is
// changed (host_graph.h), how op programs are made.
#pragma once

#include <array>
#include <atomic>
#include <chrono>

#include "tessera/describe/host_memory.h"
#include "tessera/describe/op_group.h"
#include "tessera/describe/op_program.h"
#include "tessera/describe/profile.h"
#include "tessera/describe/side_by_side.h"

namespace tessera::description {

/// An append buffer that was asked for more rows than it has.
struct Overflow {
  std::string buffer;
  std::uint64_t asked = 0;
  std::uint64_t capacity = 0;
};

struct LaunchReport {
  std::vector<Overflow> overflows;
  Profile profile;
};

/// A time that a launch notes while a change copies its node.
class NotedTime {
 public:
  NotedTime() = default;
  NotedTime(const NotedTime& other) : value_(other.get().count()) {}
  NotedTime& operator=(const NotedTime& other) {
    set(other.get());
    return *this;
  }
  [[nodiscard]] std::chrono::nanoseconds get() const {
    return std::chrono::nanoseconds(value_.load(std::memory_order_relaxed));
  }
  void set(std::chrono::nanoseconds time) { value_.store(time.count(), std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{std::chrono::nanoseconds::max().count()};
};

/// A node with everything a run of it needs.
struct BoundNode {
  std::vector<Argument> arguments;
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::shared_ptr<const KernelFunction> kernel;
  std::shared_ptr<const std::vector<CaptureCall::Call>>
      calls;                                            ///< of a captured node; null: not captured yet
  std::shared_ptr<std::vector<double>> device_numbers;  ///< by parameter
  std::vector<op::HostTensor> numbers;                  ///< of an op: its scalars, in the order of inputs
  bool is_side_by_side = false;  ///< a host function that may run at the same time as others
  /// What its last run took, if it is such; at first more than anything.
  NotedTime last_time;
  // On a device:
  DeviceCodeRef code;                             ///< of a kernel or a captured node
  std::vector<std::shared_ptr<std::byte>> cells;  ///< by parameter: where a number lies that is read there
};

/// What a kernel or a captured node calls: fails if it is for another side than the memory. The kernel must
/// load.
[[nodiscard]] Result<void> bind_code(const Node& node, const HostMemory& memory, const KernelTable& kernels,
                                     BoundNode& to);

/// Arguments and kernel of a node of `program`; does not capture. The kernel must load.
[[nodiscard]] Result<BoundNode> bind_node(const Program& program, std::uint32_t node,
                                          const HostMemory& memory, const KernelTable& kernels);

/// A number as a tensor of rank 0. REQUIRES that it fits the dtype.
[[nodiscard]] Result<op::HostTensor> number_tensor(const ScalarValue& value, Dtype dtype);

/// Records the calls of a captured node, if all its buffers are there; on a device that does it.
[[nodiscard]] Result<void> capture(const Program& program, std::uint32_t node, BoundNode& bound,
                                   const KernelTable& kernels);

/// The error of a loop that would have had so many iterations; 0: nobody knows how many.
[[nodiscard]] Error beyond_limit(const Program& program, std::uint32_t region, std::int64_t count = 0);

/// The nodes in a region and in those inside it, ascending.
[[nodiscard]] std::vector<std::uint32_t> nodes_in(const Program& program, std::uint32_t region);

/// The error of something that went wrong at a node.
[[nodiscard]] Error at_node(const Program& program, std::uint32_t node, Error error);

/// A group with everything a run of it needs.
struct BoundGroup {
  std::shared_ptr<OpProgram> program;  ///< null: its nodes run one by one
  std::vector<op::Array> inputs;
  std::vector<op::Array> results;
  std::vector<std::uint64_t> numbers;
};

struct HostExecutable {
  std::shared_ptr<const Program> program;
  HostMemory memory;
  std::vector<BoundNode> nodes;
  Grouping grouping;
  std::vector<BoundGroup> groups;
  std::shared_ptr<SideBySide> threads;  ///< null: steps run one after the other
  // On a device:
  std::shared_ptr<DeviceSchedule> held;  ///< null: the host drives the steps
  std::string driven;                    ///< why it does; empty: it does not, or something is not bound yet
};

/// An external buffer that is used and not bound; no_index if there is none.
[[nodiscard]] std::uint32_t unbound_buffer(const HostExecutable& executable);

/// Runs all steps once. Fails for an external buffer that is not bound, a kernel that throws, a loop beyond
/// its limit; the error names the node or region. Not thread-safe: one run of an executable at a time.
[[nodiscard]] Result<LaunchReport> run(HostExecutable& executable, ProfilingLevel level);

}  // namespace tessera::description
