// Generated fusion regions as a source of tiles: groups of element-wise ops, reductions and broadcasts over
// one iteration space that a single generated loop computes.
//
// A region is connected and convex; everything that escapes from it is an output of the loop. All regions of
// up to `largest` ops are listed, and of the larger ones those to which nothing can be added, and the stages
// (fusion_stages.h), which can all be taken together. Those that cover the most come first: if the effort
// ends the listing, what there is makes a good tiling.
#pragma once

#include <functional>
#include <span>

#include "tessera/pattern/small_regions.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::pattern {

struct RegionOptions {
  std::uint32_t largest = small_region_limit;  ///< at most small_region_limit
  /// What a region costs; nodes ascending. Without it 1, as a pattern.
  std::function<double(const Graph&, std::span<const NodeId>)> cost = {};
  /// A group may have so many small regions for each of its ops. Beyond, the list is not complete.
  std::size_t regions_per_node = 512;
};

class RegionGrower final : public TileSource {
 public:
  explicit RegionGrower(RegionOptions options = {});

  [[nodiscard]] std::string name() const override { return "regions"; }
  [[nodiscard]] Result<void> list(const Graph& graph, CandidateList& out) const override;
  void describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const override;
  [[nodiscard]] std::string name_of(const CandidateList&, std::size_t) const override { return "region"; }

 private:
  RegionOptions options_;
  std::shared_ptr<const TileKind> kind_ =
      std::make_shared<const TileKind>(TileKind{.name = "region", .kernel = "region"});
};

}  // namespace tessera::pattern
