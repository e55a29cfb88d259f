#include "tessera/pattern/region_grower.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/pattern/maximal_regions.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// No group has more small regions than this, however large it is.
constexpr std::size_t group_limit = 2'000'000;

class RegionLister {
 public:
  RegionLister(const Graph& graph, const RegionOptions& options, CandidateList& out)
      : graph_(graph),
        options_(options),
        out_(out),
        groups_(find_fusion_groups(graph)),
        convexity_(graph),
        small_(graph, groups_, convexity_) {}

  Result<void> run() {
    if (groups_.without_shape > 0)
      out_.set_incomplete(
          cat("regions: the iteration space of ", groups_.without_shape, " ops is not known"));
    for (std::uint32_t group = 0; group < groups_.groups.size() && !is_full_; ++group) {
      out_.share_time(groups_.groups.size() - group);
      TESSERA_TRY(list_small(group));
      TESSERA_TRY(list_maximal(group));
    }
    if (was_late_) out_.set_out_of_time("regions: the time was over");
    if (was_late_) return {};
    if (is_full_) out_.set_incomplete("regions: there are too many candidates");
    if (complete_to_ < options_.largest)
      out_.set_incomplete(cat("regions: some of more than ", complete_to_, " ops"));
    if (misses_maximal_) out_.set_incomplete("regions: some maximal ones");
    return {};
  }

 private:
  Result<void> list_small(std::uint32_t group) {
    const std::size_t limit = std::min(options_.regions_per_node * groups_.groups[group].size(), group_limit);
    complete_to_ = std::min(complete_to_, small_.find(group, options_.largest, limit, should_stop_));
    for (const SmallRegion& region : small_.regions()) TESSERA_TRY(add(nodes_in(region)));
    return {};
  }
  Result<void> list_maximal(std::uint32_t group) {
    if (groups_.groups[group].size() <= options_.largest) return {};  // they are all listed
    const MaximalRegions found = find_maximal_regions(graph_, groups_, group, convexity_, should_stop_);
    misses_maximal_ = misses_maximal_ || !found.is_complete;
    for (const auto& region : found.regions)
      if (region.size() > options_.largest) TESSERA_TRY(add(region));
    return {};
  }
  Result<void> add(std::span<const NodeId> nodes) {
    const double cost = options_.cost != nullptr ? options_.cost(graph_, nodes) : 1;
    if (!std::isfinite(cost) || cost < 0)
      return Error(ErrorCode::invalid_argument, cat("a region of ", nodes.size(), " ops: cost ", cost,
                                                    " is not a finite number of at least 0"));
    is_full_ = is_full_ || !out_.add(nodes, cost, 0, {});
    return {};
  }

  const Graph& graph_;
  const RegionOptions& options_;
  CandidateList& out_;
  FusionGroups groups_;
  Convexity convexity_;
  SmallRegions small_;
  std::uint32_t complete_to_ = small_region_limit;
  bool misses_maximal_ = false;
  bool is_full_ = false;
  bool was_late_ = false;
  const std::function<bool()> should_stop_ = [this] {
    const bool is_late = out_.out_of_time();
    was_late_ = was_late_ || is_late;
    return is_late;
  };
};

}  // namespace

RegionGrower::RegionGrower(RegionOptions options) : options_(std::move(options)) {
  options_.largest = std::clamp(options_.largest, 1U, small_region_limit);
}

Result<void> RegionGrower::list(const Graph& graph, CandidateList& out) const {
  return RegionLister(graph, options_, out).run();
}

Tile RegionGrower::describe(const Graph& graph, const CandidateList& list, std::size_t i) const {
  const auto nodes = list.nodes(i);
  Tile tile{.name = "region", .kernel = "region", .nodes = {nodes.begin(), nodes.end()}};
  tile.images.reserve(nodes.size());
  for (NodeId node : nodes) tile.images.push_back({.id = graph.id(node), .nodes = {node}});
  find_boundary(graph, tile);
  return tile;
}
