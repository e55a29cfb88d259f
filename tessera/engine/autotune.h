// Measures what the tiler considers close. Covers of a function that are predicted to take at most a fifth
// longer than the best are tried, the closest first. Only what differs runs on the device, in turn with what
// is in its place: a kernel against two, an op in a product against the same op in the kernel behind it. If
// all that is faster alone does not make the whole slower it is taken; what was found is remembered for this
// machine, version and number of threads.
//
//   const auto tuned = TESSERA_TRY(autotune(function, *device));
//   auto planned = TESSERA_TRY(compiler::plan_program(tuned.function, tuned.target));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/pipeline.h"
#include "tessera/runtime/code_store.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// No tile reaches from one of the first statements of a function to one of the second.
struct TileCut {
  std::vector<std::uint32_t> before, behind;

  bool operator==(const TileCut&) const = default;
};

/// A cover that was measured: with this cut, and with those that were kept before it.
struct TuningTrial {
  TileCut cut;
  double predicted_ns = 0;  ///< of the whole function
  double measured_ns = 0;   ///< of the tiles that differ from the fastest so far
  double best_ns = 0;       ///< of those in their place, measured in turn
  bool is_kept = false;
};

struct Tuning {
  double predicted_ns = 0;  ///< of the cover that is predicted to be the best
  std::vector<TuningTrial> trials;
  bool is_remembered = false;  ///< it was measured before
  std::string why_not;         ///< why nothing was measured; empty if something could be
};

/// Lines for people; what is remembered is the same, without `is_remembered`.
[[nodiscard]] std::string to_text(const Tuning& tuning);
/// Fails with the line that is wrong, or that names a statement beyond `statements`.
[[nodiscard]] Result<Tuning> parse_tuning(std::string_view text, std::size_t statements);

/// Sources of tiles without those that a cut forbids.
[[nodiscard]] pattern::Target with_cuts(const pattern::Target& target, const std::vector<TileCut>& cuts);

struct Tuned {
  ir::FunctionRef function;  ///< after the passes
  pattern::Target target;    ///< what the fastest cover is chosen from
  Tuning tuning;
};

/// The function as it is, and what the device offers.
[[nodiscard]] Tuned untuned(ir::FunctionRef function, const runtime::Device& device);

/// Runs the passes, then measures, or finds in `store` what was measured. Only functions without regions and
/// ops of the caller's own are measured, on inputs made up: on devices that share the host's memory. Open
/// sizes are taken to be 64. What cannot be measured is planned as predicted, and `why_not` tells the reason.
/// Takes up to two seconds.
[[nodiscard]] Result<Tuned> autotune(
    const ir::FunctionRef& function, runtime::Device& device, const compiler::PipelineOptions& pipeline = {},
    const runtime::CodeStore& store = runtime::CodeStore(runtime::CodeStore::default_folder("tunings")));

}  // namespace tessera::engine
