#include "tessera/pattern/region_grower.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/pattern/fusion_stages.h"
#include "tessera/pattern/maximal_regions.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// No group has more small regions than this, however large it is.
constexpr std::size_t group_limit = 2'000'000;
/// What it takes to ask what a region costs.
constexpr std::uint64_t priced_work = 40;
constexpr std::uint64_t priced_node_work = 20;

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
    // The effort may be over anywhere, so what covers the whole graph comes first: every op alone, regions
    // that partition it, the largest ones. Then all small ones, size by size.
    TESSERA_TRY(list_single());
    TESSERA_TRY(list_large());
    TESSERA_TRY(list_small());
    if (was_cut_)
      out_.set_cut("regions");
    else if (is_full_)
      out_.set_full("regions");
    if (was_cut_ || is_full_) return {};
    if (complete_to_ < options_.largest)
      out_.set_incomplete(cat("regions: some of more than ", complete_to_, " ops"));
    if (misses_maximal_) out_.set_incomplete("regions: some maximal ones");
    return {};
  }

 private:
  Result<void> list_single() {
    for (const std::vector<NodeId>& group : groups_.groups)
      for (NodeId node : group) TESSERA_TRY(add({&node, 1}));
    return {};
  }

  Result<void> list_large() {
    std::vector<std::vector<NodeId>> regions;
    small_stages_.resize(groups_.groups.size());
    for (const StageOrder order : {StageOrder::as_early_as_possible, StageOrder::as_late_as_possible})
      for (std::vector<NodeId>& stage : find_stages(graph_, groups_, order)) {
        auto& small = small_stages_[groups_.group_of[stage[0]]];
        (stage.size() > options_.largest ? regions : small).push_back(std::move(stage));
      }
    TESSERA_TRY(add_new(regions, {}));
    const std::vector<std::vector<NodeId>> known = std::move(regions);
    for (std::uint32_t group = 0; group < groups_.groups.size(); ++group) {
      if (groups_.groups[group].size() <= options_.largest) continue;  // the small ones are all there are
      out_.begin_part(groups_.groups.size() - group + 1);
      MaximalRegions found = find_maximal_regions(graph_, groups_, group, convexity_, out_.effort());
      if (!found.is_complete) (out_.effort().is_over() ? was_cut_ : misses_maximal_) = true;
      std::erase_if(found.regions, [&](const auto& region) { return region.size() <= options_.largest; });
      TESSERA_TRY(add_new(found.regions, known));
    }
    return {};
  }

  /// Adds each of the regions once, and none that is among `known`. Sorts them. REQUIRES `known` is sorted.
  Result<void> add_new(std::vector<std::vector<NodeId>>& regions,
                       const std::vector<std::vector<NodeId>>& known) {
    std::ranges::sort(regions);
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    for (const std::vector<NodeId>& region : regions)
      if (!std::ranges::binary_search(known, region)) TESSERA_TRY(add(region));
    return {};
  }

  Result<void> list_small() {
    for (std::uint32_t group = 0; group < groups_.groups.size(); ++group) {
      out_.begin_part(groups_.groups.size() - group);
      const std::size_t ops = groups_.groups[group].size();
      const std::size_t limit = std::min({options_.regions_per_node * ops, group_limit, out_.room() + ops});
      const std::uint32_t complete_to = small_.find(group, options_.largest, limit, out_.effort());
      was_cut_ = was_cut_ || (complete_to < options_.largest && out_.effort().is_over());
      complete_to_ = std::min(complete_to_, complete_to);
      TESSERA_TRY(add_stages(group, complete_to));
      for (const SmallRegion& region : std::span(small_.regions()).subspan(ops))  // the first are single ops
        TESSERA_TRY(add(nodes_in(region)));
    }
    return {};
  }
  /// The stages of a group that are larger than what is listed completely. One may come twice.
  Result<void> add_stages(std::uint32_t group, std::uint32_t complete_to) {
    auto& stages = small_stages_[group];
    std::erase_if(stages, [&](const auto& stage) { return stage.size() <= complete_to; });
    return add_new(stages, {});
  }

  Result<void> add(std::span<const NodeId> nodes) {
    const double cost = options_.cost != nullptr ? options_.cost(graph_, nodes) : 1;
    if (options_.cost != nullptr) out_.effort().spend(priced_work + priced_node_work * nodes.size());
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
  std::vector<std::vector<std::vector<NodeId>>> small_stages_;  ///< by group
  std::uint32_t complete_to_ = small_region_limit;
  bool misses_maximal_ = false;
  bool is_full_ = false;
  bool was_cut_ = false;
};

}  // namespace

RegionGrower::RegionGrower(RegionOptions options) : options_(std::move(options)) {
  options_.largest = std::clamp(options_.largest, 1U, small_region_limit);
}

Result<void> RegionGrower::list(const Graph& graph, CandidateList& out) const {
  return RegionLister(graph, options_, out).run();
}

void RegionGrower::describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const {
  out.kind = kind_;
  for (NodeId node : list.nodes(i)) out.nodes.push_back(node);
  for (NodeId node : list.nodes(i)) out.node_images.push_back(node);
  find_boundary(graph, out);
}
