#include "tessera/runtime/cuda/resident_graph.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// A graph that is given back unless it is taken.
class HeldGraph {
 public:
  explicit HeldGraph(const Driver& driver) : driver_(driver) {}
  ~HeldGraph() {
    if (handle != nullptr) driver_.cuGraphDestroy(handle);
  }
  HeldGraph(const HeldGraph&) = delete;
  HeldGraph& operator=(const HeldGraph&) = delete;

  CUgraph handle = nullptr;

 private:
  const Driver& driver_;
};

}  // namespace

ResidentGraph::~ResidentGraph() {
  const auto current = context_->enter();
  if (current) drop();
}

/// A launch that is under way goes on: the driver frees when it is done.
void ResidentGraph::drop() {
  if (executable_ != nullptr) context_->driver().cuGraphExecDestroy(executable_);
  if (graph_ != nullptr) context_->driver().cuGraphDestroy(graph_);
  executable_ = nullptr;
  graph_ = nullptr;
  nodes_.clear();
  held_.clear();
}

bool ResidentGraph::fits(std::span<const BoundLaunch> launches,
                         std::span<const std::vector<std::uint32_t>> after) const {
  const auto same_kind = [](const BoundLaunch& a, const BoundLaunch& b) {
    return a.kind == b.kind && a.waits_itself == b.waits_itself && a.graph == b.graph &&
           a.condition == b.condition && a.conditional == b.conditional;
  };
  return executable_ != nullptr &&
         std::equal(launches.begin(), launches.end(), held_.begin(), held_.end(), same_kind) &&
         std::equal(after.begin(), after.end(), after_.begin(), after_.end());
}

Result<void> ResidentGraph::instantiate(std::span<const BoundLaunch> launches, const LaunchBlame& blame) {
  const Driver& driver = context_->driver();
  HeldGraph graph(driver);
  TESSERA_CUDA(driver, cuGraphCreate, &graph.handle, 0);
  WrittenGraph written =
      TESSERA_TRY(write_graph(*context_, *capturing_, graph.handle, launches, after_, blame));
  CUgraphExec executable = nullptr;
  TESSERA_CUDA(driver, cuGraphInstantiate, &executable, graph.handle, 0);
  drop();
  graph_ = std::exchange(graph.handle, nullptr);
  executable_ = executable;
  nodes_ = std::move(written.nodes);
  conditions_ = std::move(written.conditions);
  held_.assign(launches.begin(), launches.end());
  return {};
}

Result<GraphUpdate> ResidentGraph::set(std::span<const BoundLaunch> launches,
                                       std::span<const std::vector<std::uint32_t>> after,
                                       const LaunchBlame& blame) {
  if (fits(launches, after)) {
    std::vector<std::uint32_t> all(launches.size());
    std::iota(all.begin(), all.end(), 0);
    return patch(launches, all, blame);
  }
  std::vector<std::vector<std::uint32_t>> old = std::exchange(after_, {after.begin(), after.end()});
  if (auto done = instantiate(launches, blame); !done) {
    after_ = std::move(old);
    return std::move(done).error();
  }
  return GraphUpdate{.is_instantiated = true};
}

Result<void> ResidentGraph::set_one(std::size_t i, const BoundLaunch& launch) const {
  if (launch.condition == 0) return set_node(*context_, *capturing_, executable_, nodes_[i], launch);
  return set_node(*context_, *capturing_, executable_, nodes_[i], with_handle(launch, conditions_));
}

/// What the driver has taken once it takes again; if it does not, there is nothing left that can be relied
/// on.
void ResidentGraph::take_back(Patched patched) {
  for (auto& [i, launch] : patched) {
    if (!set_one(i, launch)) return drop();
    held_[i] = std::move(launch);
  }
}

Result<GraphUpdate> ResidentGraph::patch(std::span<const BoundLaunch> launches,
                                         std::span<const std::uint32_t> changed, const LaunchBlame& blame) {
  GraphUpdate out;
  Patched before;
  for (const std::uint32_t i : changed) {
    if (launches[i] == held_[i]) continue;
    if (auto done = set_one(i, launches[i]); !done) {
      std::string refusal = blame(i, std::move(done).error()).message();
      if (auto made = instantiate(launches, blame); !made) {
        take_back(std::move(before));
        return std::move(made).error();
      }
      return GraphUpdate{.is_instantiated = true, .refusal = std::move(refusal)};
    }
    ++out.patched;
    if (launches[i].function != held_[i].function) ++out.new_code;
    if (launches[i].kind == BoundLaunch::Kind::product || launches[i].kind == BoundLaunch::Kind::captured)
      ++out.recaptured;
    before.emplace_back(i, std::exchange(held_[i], launches[i]));
  }
  return out;
}

Result<void> ResidentGraph::launch(const Stream& stream) const {
  TESSERA_CUDA(context_->driver(), cuGraphLaunch, executable_, stream.handle());
  return {};
}
