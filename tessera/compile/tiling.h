// Covers a function with steps: fused kernels where the target has them, single ops elsewhere. The tiler
// (pattern/) chooses the regions, the kernel builder has the last word: a region that is no kernel is
// divided.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/kernel/kernel.h"
#include "tessera/pattern/target.h"

namespace tessera::compile {

struct TilingOptions {
  /// What a size symbol is like, for comparing costs.
  std::int64_t usual_size = 64;
  std::chrono::milliseconds budget{200};
};

/// One step: a statement, or several that one kernel computes.
struct TiledPart {
  std::vector<std::uint32_t> statements;  ///< ascending
  std::shared_ptr<const kernel::Kernel> kernel;
  ir::FunctionRef ops;  ///< of a kernel: the statements as a function
};

struct TiledFunction {
  std::vector<TiledPart> parts;  ///< in an order in which they can run
  double cost = 0;               ///< predicted nanoseconds
  double bound = 0;
  bool is_optimal = true;
  std::vector<std::string> gaps;  ///< what the tiler did not look at
};

/// Without sources in the target every statement is a step.
[[nodiscard]] Result<TiledFunction> tile(const ir::Function& function, const pattern::Target& target,
                                         const TilingOptions& options = {});

/// A source of tiles for devices that run kernels: regions of element-wise ops, broadcasts and reductions
/// over one iteration space, at the price of their memory traffic.
[[nodiscard]] std::shared_ptr<const pattern::TileSource> fused_regions(std::int64_t usual_size = 64);

}  // namespace tessera::compile
