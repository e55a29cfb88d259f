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
  const CUresult instantiated = driver.cuGraphInstantiate(&executable, graph.handle, 0);
  auto done = written.conditions.empty() ? checked(driver, instantiated, "cuGraphInstantiate")
                                         : checked_support(driver, instantiated, "cuGraphInstantiate");
  // The driver does not say which node it is about.
  if (!done && launches.size() == 1) return blame(0, std::move(done).error());
  TESSERA_TRY(std::move(done));
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

Result<void> ResidentGraph::set_one(std::size_t i, const BoundLaunch& launch,
                                    const std::optional<CapturedGraph>& captured) const {
  if (launch.condition == 0) return set_node(*context_, executable_, nodes_[i], launch, captured);
  return set_node(*context_, executable_, nodes_[i], with_handle(launch, conditions_), captured);
}

/// What the driver has taken once it takes again; if it does not, there is nothing left that can be relied
/// on.
void ResidentGraph::take_back(Patched patched) {
  for (auto& [i, launch] : patched) {
    const auto captured = captured_of(*context_, *capturing_, launch);
    if (!captured || !set_one(i, launch, *captured)) return drop();
    held_[i] = std::move(launch);
  }
}

/// Those that differ. What calls of the program queue is captured here, before any node is touched: they may
/// fail.
Result<std::vector<ResidentGraph::Patch>> ResidentGraph::patches_of(std::span<const BoundLaunch> launches,
                                                                    std::span<const std::uint32_t> changed,
                                                                    const LaunchBlame& blame) const {
  std::vector<Patch> out;
  std::vector<std::uint32_t> each_once(changed.begin(), changed.end());
  std::sort(each_once.begin(), each_once.end());
  each_once.erase(std::unique(each_once.begin(), each_once.end()), each_once.end());
  for (const std::uint32_t i : each_once) {
    if (launches[i] == held_[i]) continue;
    auto captured = captured_of(*context_, *capturing_, launches[i]);
    if (!captured) return blame(i, std::move(captured).error());
    out.push_back({i, *std::move(captured)});
  }
  return out;
}

Result<GraphUpdate> ResidentGraph::patch(std::span<const BoundLaunch> launches,
                                         std::span<const std::uint32_t> changed, const LaunchBlame& blame) {
  if (!is_set()) {
    TESSERA_TRY(instantiate(launches, blame));
    return GraphUpdate{.is_instantiated = true};
  }
  GraphUpdate out;
  Patched before;
  for (const auto& [i, captured] : TESSERA_TRY(patches_of(launches, changed, blame))) {
    if (auto done = set_one(i, launches[i], captured); !done) {
      std::string refusal = blame(i, std::move(done).error()).message();
      if (auto made = instantiate(launches, blame); !made) {
        take_back(std::move(before));
        return std::move(made).error();
      }
      return GraphUpdate{.is_instantiated = true, .refusal = std::move(refusal)};
    }
    ++out.patched;
    if (launches[i].function != held_[i].function) ++out.new_code;
    if (captured) ++out.recaptured;
    before.emplace_back(i, std::exchange(held_[i], launches[i]));
  }
  return out;
}

Result<void> ResidentGraph::launch(const Stream& stream) const {
  auto done = checked(context_->driver(), context_->driver().cuGraphLaunch(executable_, stream.handle()),
                      "cuGraphLaunch");
  return done ? std::move(done) : stream.blame(std::move(done).error());
}
