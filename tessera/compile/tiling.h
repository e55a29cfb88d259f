// Covers a function with steps: fused kernels and the device's own tiles where the target has them, single
// ops elsewhere. The tiler (pattern/) chooses the regions, the kernel builder has the last word: a region
// that is no kernel is divided.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/kernel/kernel.h"
#include "tessera/pattern/step_cost.h"
#include "tessera/pattern/target.h"
#include "tessera/pattern/tiler.h"

namespace tessera::compiler {

struct TilingOptions {
  /// How much work the tiler may do, in units of about a nanosecond (cover/effort.h). It is counted, not
  /// timed: what is chosen depends on the function and the target alone. Empty: what `usual_work` says.
  std::optional<std::uint64_t> work = {};
  /// Keeps the list of candidates in the tiling, for those who ask what was not chosen.
  bool keep_candidates = false;
};

/// One step: a statement, or several that one kernel or a library of the device computes.
struct TiledPart {
  std::vector<std::uint32_t> statements = {};  ///< ascending
  std::shared_ptr<const kernel::Kernel> kernel = {};
  ir::FunctionRef ops = {};              ///< the statements as a function; null: the one statement as it is
  std::vector<ir::ExprRef> inputs = {};  ///< what its parameters are: variables and constants
};

struct TiledFunction {
  std::vector<TiledPart> parts;  ///< in an order in which they can run
  pattern::Tiling tiling;        ///< what the tiler chose and how it is proved; no tiles without sources
};

/// A line per part: its statements, and what computes them.
[[nodiscard]] std::string to_text(const ir::Function& function, const TiledFunction& tiled);

/// What the tiler may do for a function of so many statements: the same for all that are short, and as much
/// for each statement of a long one, so that long functions are tiled as well as short ones in a time that
/// grows as they do.
[[nodiscard]] std::uint64_t usual_work(std::size_t statements);

/// Without sources in the target every statement is a step.
[[nodiscard]] Result<TiledFunction> tile(const ir::Function& function, const pattern::Target& target,
                                         const TilingOptions& options = {});

/// The function as the graph that is tiled, with what its calls compute; sizes that are not known are usual.
[[nodiscard]] Result<pattern::Graph> graph_to_tile(const ir::Function& function);

/// A source of tiles for devices that run kernels: regions of element-wise ops, broadcasts and reductions
/// over one iteration space.
[[nodiscard]] std::shared_ptr<const pattern::TileSource> fused_regions(pattern::StepCosts costs = {});

}  // namespace tessera::compiler
