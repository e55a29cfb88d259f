// What the tiler chooses from, and at what prices. A device gives its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/pattern/step_cost.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::pattern {

struct Target {
  std::string name = {};
  std::vector<std::shared_ptr<const TileSource>> sources = {};
  /// What a node costs that is in no tile. Without it, more than any tiling, so that as much as possible is
  /// covered.
  std::function<double(const Graph&, NodeId)> uncovered_cost = {};
  /// What single ops of a program are priced by.
  StepCosts costs = {};
  ListLimits limits = {};
  /// Products of i32 read a right operand of 8 bits as it is.
  bool reads_narrow_factors = false;
  /// Longer chains become several kernels, which are often equal: code for one takes time to generate.
  std::size_t most_ops_in_kernel = 256;
};

}  // namespace tessera::pattern
