// A description that runs on the host, or on a device that the host has, and is changed while it runs.
//
//   auto graph = TESSERA_TRY(HostGraph::create(*b.finish(), b.kernels(), {.bindings = bindings}));
//   TESSERA_TRY(graph->set_number("scale", "by", 3.0));  // noted
//   const UpdateReport report = graph->update();         // applied, all changes together: its tier is hot
//   const LaunchReport launched = TESSERA_TRY(graph->launch());
//
// Changes are noted by the setters and applied by update(), all or none. If it fails, the last good plan goes
// on, the changes stay noted, and update() tries again after the next one. Any number of threads may call
// anything: launches run one after the other, and update() waits for the one in flight before it changes what
// that reads. A kernel, a loader or a capture may not call the graph that runs it: each call is then an
// error.
#pragma once

#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "tessera/describe/host_executor.h"
#include "tessera/describe/update.h"

namespace tessera::description {

struct HostOptions {
  Bindings bindings = {};
  ProfilingLevel profiling = ProfilingLevel::none;
  std::uint64_t memory = 0;  ///< bytes the description may take; 0: what the device, or the machine, has
  /// Kernels that do not wait for each other run on so many threads, as do captured nodes that allow it
  /// (CaptureCall::allow_side_by_side); 0: as many as there are processors, 1: one after the other.
  std::uint32_t threads = 0;
  /// Makes programs of op nodes (engine/op_compiler.h); without one they run one by one by the reference.
  std::shared_ptr<OpCompiler> compiler = {};
  /// Where buffers lie and nodes run (engine/graph_device.h); null: on the host. Memory that is bound is the
  /// device's, kernels and captures are for it, and op nodes are not compiled together.
  GraphDeviceRef device = {};
};

/// What create() makes of a description before it looks at kernels and memory, made at another time.
struct PreparedGraph {
  std::shared_ptr<const Program> program;
  Grouping grouping;
  std::vector<std::shared_ptr<OpProgram>> programs;  ///< by group; null: its nodes run one by one
};

/// A description that programs may share: it is copied when it is changed while one does.
class SharedDescription {
 public:
  explicit SharedDescription(Description description)
      : shared_(std::make_shared<Description>(std::move(description))) {}

  const Description& operator*() const { return *shared_; }
  const Description* operator->() const { return shared_.get(); }
  [[nodiscard]] std::shared_ptr<const Description> share() const { return shared_; }
  /// One thread at a time.
  Description& edit() {
    if (shared_.use_count() != 1) shared_ = std::make_shared<Description>(*shared_);
    std::atomic_thread_fence(std::memory_order_acquire);  // the last who shared it has read it
    return *shared_;
  }

 private:
  std::shared_ptr<Description> shared_;
};

class HostGraph {
 public:
  /// Validates and builds. The error of an invalid description is its first, with the others as notes.
  static Result<std::unique_ptr<HostGraph>> create(Description description, KernelTable kernels,
                                                   HostOptions options = {});

  /// Builds what was prepared. The error has all that is wrong with the kernels: names that are missing, and
  /// kernels that take other parameters than their nodes have. On a device the groups do not count.
  static Result<std::unique_ptr<HostGraph>> create(PreparedGraph prepared, KernelTable kernels,
                                                   HostOptions options = {});

  /// The number of a parameter: an integer stays one, a float may be given as an integer.
  Result<void> set_number(std::string_view node, std::string_view parameter, ScalarValue value);
  /// The grid of a kernel or a captured node.
  Result<void> set_grid(std::string_view node, std::array<std::int64_t, 3> grid);
  /// The memory of an external buffer, with a new shape if one is given. The memory must outlive its use.
  Result<void> bind(std::string_view buffer, std::span<std::byte> memory, std::optional<Extents> shape = {});
  /// The shape of a graph or region buffer. What a graph buffer held is zero after it.
  Result<void> resize(std::string_view buffer, Extents shape);
  /// Another kernel or capture under a name that the graph knows: one of its table, or one that a node calls.
  /// What Builder makes of a function given with a node is called "function of NODE".
  Result<void> replace_kernel(std::string name, KernelFunction kernel);
  Result<void> replace_kernel(std::string name, KernelLoader loader);
  Result<void> replace_kernel(std::string name, DeviceCode code);
  Result<void> replace_capture(std::string name, CaptureFunction capture);
  Result<void> replace_capture(std::string name, DeviceCode code);
  /// Another description in place of the one there is.
  Result<void> set_description(Description description);

  UpdateReport update();
  [[nodiscard]] Result<LaunchReport> launch();

  void set_profiling(ProfilingLevel level) { profiling_ = level; }
  /// The description with all changes that were noted.
  [[nodiscard]] Result<Description> description() const;
  /// The schedule that runs now, and the diagnostics of the last validation.
  [[nodiscard]] Result<std::shared_ptr<const Program>> program() const;
  [[nodiscard]] Result<Report> report() const;
  /// Rows in an append buffer after the last launch.
  [[nodiscard]] Result<std::uint64_t> count(std::string_view buffer) const;
  /// A copy of a graph buffer's content.
  [[nodiscard]] Result<std::vector<std::byte>> content(std::string_view buffer) const;

 private:
  /// What has been noted and not applied yet, by positions in the draft.
  struct Pending {
    std::string structure;  ///< what changed; empty if the structure is the same
    std::set<std::pair<std::uint32_t, std::string>> numbers;  ///< node, parameter
    std::set<std::uint32_t> grids, shapes, bindings;
    std::set<std::uint32_t> ops;  ///< nodes that call another one
    std::set<std::string> kernels, captures;

    [[nodiscard]] bool is_empty() const {
      return structure.empty() && numbers.empty() && grids.empty() && shapes.empty() && bindings.empty() &&
             kernels.empty() && captures.empty() && ops.empty();
    }
    /// Whether nothing but ops is others.
    [[nodiscard]] bool has_only_ops() const {
      return !ops.empty() && structure.empty() && numbers.empty() && grids.empty() && shapes.empty() &&
             bindings.empty() && kernels.empty() && captures.empty();
    }
  };
  class Updater;

  HostGraph(Description description, KernelTable kernels, HostOptions options);
  void index_draft();
  [[nodiscard]] Result<void> check_bindings() const;
  [[nodiscard]] Result<std::uint32_t> draft_node(std::string_view id) const;
  [[nodiscard]] Result<std::uint32_t> draft_buffer(std::string_view id) const;
  [[nodiscard]] Result<std::uint32_t> running_buffer(std::string_view id) const;
  [[nodiscard]] Result<void> check_called(NodeKind kind, std::string_view name) const;
  [[nodiscard]] Dtype number_dtype(std::uint32_t node, const Parameter& number) const;
  /// Fails if a function that this graph has called is calling back.
  [[nodiscard]] Result<void> check_caller() const;
  void note() { is_noted_ = true; }

  mutable std::mutex edit_mutex_;  // the draft and what is pending; held during an update
  SharedDescription draft_;
  std::unordered_map<std::string, std::uint32_t> node_names_, buffer_names_;  // of the draft
  KernelTable kernels_;
  Bindings bindings_;
  std::uint64_t memory_limit_;
  std::shared_ptr<OpCompiler> compiler_;
  GraphDeviceRef device_;
  std::shared_ptr<SideBySide> threads_;  // null: one
  Pending pending_;
  bool is_noted_ = false;  // something changed since the last update
  std::optional<Error> last_error_;
  Report report_;

  mutable std::mutex launch_mutex_;  // the executable; taken after edit_mutex_ where both are
  std::unique_ptr<HostExecutable> executable_;
  std::atomic<ProfilingLevel> profiling_;
  // Whose functions run now: the mutexes would wait for themselves.
  std::atomic<std::thread::id> launching_thread_, updating_thread_;
};

}  // namespace tessera::description
