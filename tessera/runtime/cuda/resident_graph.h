// A CUDA Graph that stays on the device: made once, patched node by node when what its launches do changes,
// made anew only when its topology does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/runtime/cuda/graph_writer.h"

namespace tessera::runtime::cuda {

/// What had to be done before a launch.
struct GraphUpdate {
  std::uint32_t patched = 0;     ///< nodes
  std::uint32_t new_code = 0;    ///< those of them that run another function than before
  std::uint32_t recaptured = 0;  ///< those of them that are a library's
  bool is_instantiated = false;  ///< all of it was made anew
  std::string refusal = {};      ///< why, where the driver refused to patch a node: the first error

  bool operator==(const GraphUpdate&) const = default;
  void clear() {
    patched = new_code = recaptured = 0;
    is_instantiated = false;
    refusal.clear();
  }
};

/// One thread at a time. REQUIRES, for all functions, that the context is current.
class ResidentGraph {
 public:
  /// What libraries do is captured from `capturing`.
  ResidentGraph(ContextRef context, std::shared_ptr<const Stream> capturing)
      : context_(std::move(context)), capturing_(std::move(capturing)) {}
  ~ResidentGraph();
  ResidentGraph(const ResidentGraph&) = delete;
  ResidentGraph& operator=(const ResidentGraph&) = delete;

  /// Makes it do these launches from the next time on, each behind those in `after`. If the edges and kinds
  /// are those it has, nodes that differ are patched; if the driver refuses that, all is made anew. After an
  /// error, which goes through `blame`, it does what it did. Code `unsupported` is that of write_graph().
  [[nodiscard]] Result<GraphUpdate> set(std::span<const BoundLaunch> launches,
                                        std::span<const std::vector<std::uint32_t>> after,
                                        const LaunchBlame& blame);
  /// The same if only the launches in `changed` may differ. REQUIRES that it was set; it is made anew if
  /// nothing is left of that.
  [[nodiscard]] Result<GraphUpdate> patch(std::span<const BoundLaunch> launches,
                                          std::span<const std::uint32_t> changed, const LaunchBlame& blame);

  /// Queues it. REQUIRES is_set().
  [[nodiscard]] Result<void> launch(const Stream& stream) const;

  /// False before the first set(), and after an error behind which the driver did not even take back what it
  /// held: set() and patch() make it anew.
  [[nodiscard]] bool is_set() const { return executable_ != nullptr; }

 private:
  [[nodiscard]] bool fits(std::span<const BoundLaunch> launches,
                          std::span<const std::vector<std::uint32_t>> after) const;
  /// What nodes did before they were patched.
  using Patched = std::vector<std::pair<std::uint32_t, BoundLaunch>>;

  [[nodiscard]] Result<void> instantiate(std::span<const BoundLaunch> launches, const LaunchBlame& blame);
  /// What a node is to do.
  struct Patch {
    std::uint32_t node = 0;
    std::optional<CapturedGraph> captured;
  };

  [[nodiscard]] Result<std::vector<Patch>> patches_of(std::span<const BoundLaunch> launches,
                                                      std::span<const std::uint32_t> changed,
                                                      const LaunchBlame& blame) const;
  [[nodiscard]] Result<void> set_one(std::size_t i, const BoundLaunch& launch,
                                     const std::optional<CapturedGraph>& captured) const;
  void take_back(Patched patched);
  void drop();

  ContextRef context_;
  std::shared_ptr<const Stream> capturing_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;
  Conditions conditions_;
  std::vector<BoundLaunch> held_;                  ///< what each node does
  std::vector<std::vector<std::uint32_t>> after_;  ///< by node
};

}  // namespace tessera::runtime::cuda
