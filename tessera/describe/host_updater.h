// How HostGraph::update brings an executable up to date. Everything new is made beside the old and put in its
// place at the end, while no launch runs.
#pragma once

#include "tessera/describe/host_graph.h"

namespace tessera::description {

/// What an executable is made with.
struct BuildInputs {
  const KernelTable& kernels;
  const Bindings& bindings;
  OpCompiler* compiler = nullptr;            ///< null: op nodes run one by one
  std::uint64_t memory = 0;                  ///< bytes for what the program plans and what its groups hold
  GraphDeviceRef device = {};                ///< null: the host
  std::shared_ptr<SideBySide> threads = {};  ///< null: one
  const HostExecutable* previous =
      nullptr;  ///< graph buffers go on with its content, equal groups with its programs
  /// Groups and their programs that are there; null: they are made. Taken over.
  PreparedGraph* prepared = nullptr;
  /// Whether a captured node is the same node of `previous`, with the same function, so that what it recorded
  /// may go on. Empty: none is.
  std::function<bool(std::uint32_t)> keeps_calls = {};
};
[[nodiscard]] Result<std::unique_ptr<HostExecutable>> build_executable(std::shared_ptr<const Program> program,
                                                                       const BuildInputs& inputs,
                                                                       UpdateReport& report);

class HostGraph::Updater {
 public:
  explicit Updater(HostGraph& graph) : graph_(graph) {}

  /// Applies what is pending. REQUIRES the edit mutex.
  UpdateReport run();
  /// Builds what was prepared, as the first plan. REQUIRES the edit mutex.
  UpdateReport run(PreparedGraph prepared);

 private:
  /// What of a node must be made anew.
  struct Dirty {
    bool numbers = false;
    bool pointers = false;
    bool grid = false;
    bool kernel = false;
    bool capture = false;
  };

  UpdateReport finish(const std::function<Result<void>()>& make);
  Result<void> apply();
  Result<void> build(PreparedGraph prepared);
  void find_dirty_nodes();
  void find_dirty_numbers();
  void find_dirty_holders();
  void find_dirty_calls();
  void raise(Tier tier, std::string cause);

  /// Where only ops are others; false if there is more to it.
  Result<bool> exchange_ops();
  Result<void> exchange_groups(std::span<const std::uint32_t> nodes);

  Result<void> patch();
  Result<void> patch_node(std::uint32_t node, const Dirty& dirty);
  Result<void> patch_numbers(std::uint32_t node, BoundNode& bound);
  void patch_kernel_numbers(std::uint32_t node);
  void store_number(std::byte* where, std::span<const std::byte> bytes);
  Result<void> commit_patches();
  void swap_patches(HostExecutable& executable);
  [[nodiscard]] ScheduleChanges schedule_changes() const;
  Result<void> write_numbers();

  /// On a device, that holds the executable from now on, by what held the one before it. REQUIRES that no
  /// launch begins.
  Result<void> hold(HostExecutable& executable, std::shared_ptr<DeviceSchedule> held,
                    const ScheduleChanges& changes);

  Result<void> rebuild();
  Result<std::unique_ptr<HostExecutable>> make_executable(std::shared_ptr<const Program> program,
                                                          PreparedGraph* prepared);
  Result<void> install(std::unique_ptr<HostExecutable> next);
  [[nodiscard]] bool keeps_calls(std::uint32_t node) const;
  void compare_captures(const HostExecutable& next);

  [[nodiscard]] bool is_captured(std::uint32_t node) const {
    return graph_.draft_->nodes[node].kind == NodeKind::captured;
  }
  [[nodiscard]] std::string name(std::uint32_t node) const {
    return cat("node ", shown(graph_.draft_->nodes[node].id));
  }

  HostGraph& graph_;
  UpdateReport report_;
  std::map<std::uint32_t, Dirty> dirty_;                      // by node
  std::vector<std::pair<std::uint32_t, BoundNode>> patched_;  // by node
  /// A number that is read from memory.
  struct StoredNumber {
    std::byte* where = nullptr;
    std::array<std::byte, 8> bytes{};
    std::size_t size = 0;
  };
  std::vector<StoredNumber> stored_numbers_;
  /// A number of a kernel that is the same otherwise.
  struct KernelNumber {
    ScheduleChanges::Number which;
    ScalarValue value;
  };
  std::vector<KernelNumber> kernel_numbers_;
  std::optional<HostMemory> memory_;  // with the new bindings
  /// A group whose function is another.
  struct ExchangedGroup {
    std::uint32_t index = 0;
    OpGroup group;
    BoundGroup bound;
  };
  std::vector<ExchangedGroup> exchanged_groups_;
  std::shared_ptr<const Program> program_;  // of the groups and nodes that call other ops
  bool must_rebuild_ = false;
};

}  // namespace tessera::description
