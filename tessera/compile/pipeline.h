// The passes in their order, and the runner that goes through them: it disables, times, dumps and verifies
// any of them, and reports what each did.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/pass.h"

namespace tessera::compile {

struct Pass {
  std::string_view name;
  std::string_view summary;
  PassFunction run;
};

/// The table. A pass may stand in it more than once; its name is for all places.
[[nodiscard]] std::span<const Pass> all_passes();

struct PipelineOptions {
  PassOptions passes = {};
  /// Names of passes that do not run. An unknown name is an error.
  std::vector<std::string> disabled = {};
  /// Checks the function after every pass that changed it; what is wrong is an internal error of that pass.
  bool verify = false;
  /// Called after each pass that ran.
  std::function<void(const Pass&, const ir::Function&)> after = {};
};

/// What one pass did.
struct PassReport {
  std::string_view name;
  bool ran = false;
  bool changed = false;
  std::size_t statements_before = 0;  ///< of the function and those below
  std::size_t statements_after = 0;
  double microseconds = 0;
  std::size_t rewrites = 0;
  std::vector<Note> notes;  ///< the first of them
};

struct Outcome {
  ir::FunctionRef function;
  std::vector<PassReport> passes;
};

/// Validates the function, then runs the passes. All that is wrong with the function is in the error: the
/// first violation, the others as notes.
[[nodiscard]] Result<Outcome> run_passes(const ir::FunctionRef& function,
                                         const PipelineOptions& options = {});

}  // namespace tessera::compile
