// The passes in their order, and the runner that goes through them: it disables, times, dumps and verifies
// any of them, and reports what each did.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/pass.h"
#include "tessera/plan/plan.h"

namespace tessera::compiler {

struct Pass {
  std::string_view name;
  std::string_view summary;
  PassFunction run;
};

/// The table of those before tiling. A pass may stand in it more than once; its name is for all places.
[[nodiscard]] std::span<const Pass> all_passes();

/// What can be disabled: the passes, each once, "tile", and the passes over plans (plan_passes.h).
[[nodiscard]] std::vector<std::string_view> pass_names();
/// Fails if there is no pass of that name, with the names that there are.
[[nodiscard]] Result<void> check_pass_name(std::string_view name);

struct PipelineOptions {
  PassOptions passes = {};
  /// Names of passes that do not run. An unknown name is an error.
  std::vector<std::string> disabled = {};
  /// Checks the function after every pass that changed it; what is wrong is an internal error of that pass.
  bool verify = false;
  /// Called after each pass that ran.
  std::function<void(const Pass&, const ir::Function&)> after = {};
  /// Called after each pass over the plan that ran, and after the lowering as "lower".
  std::function<void(std::string_view pass, const plan::Plan&)> after_plan = {};
};

[[nodiscard]] bool is_disabled(const PipelineOptions& options, std::string_view pass);

/// What one pass did.
struct PassReport {
  std::string_view name;
  std::string_view unit = "statements";  ///< what is counted below
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

/// All that is wrong with a function in one error: the first violation, the others as notes.
[[nodiscard]] Result<void> check_valid(const ir::Function& function);

/// Validates the function, then runs the passes. All that is wrong with the function is in the error: the
/// first violation, the others as notes.
[[nodiscard]] Result<Outcome> run_passes(const ir::FunctionRef& function,
                                         const PipelineOptions& options = {});

}  // namespace tessera::compiler
