// The passes in their order, from a function to the memory of its plan, and what is said of them.
// pass_runner.h goes through them: it disables, times, dumps and verifies any of them, and reports what each
// did.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/compile/pass.h"
#include "tessera/compile/tiling.h"
#include "tessera/plan/binding.h"
#include "tessera/plan/plan.h"

namespace tessera::compiler {

// What a pass is: over functions (PassFunction) or plans, or from one form of the program to the next.
using TilePass = Result<TiledFunction> (*)(const ir::Function& function, const pattern::Target& target,
                                           const TilingOptions& options);
using LowerPass = Result<plan::Plan> (*)(const ir::Function& function, const TiledFunction& tiled);
/// Returns how many changes it made.
using PlanPass = std::size_t (*)(plan::Plan& plan);
using LivenessPass = Result<plan::Binding> (*)(const plan::Plan& plan, std::span<const std::int64_t> sizes);
using BufferPass = void (*)(const plan::Plan& plan, plan::Binding& binding);

struct Pass {
  std::string_view name;
  std::string_view summary;
  std::variant<PassFunction, TilePass, LowerPass, PlanPass, LivenessPass, BufferPass> run;
  std::string_view why_needed = {};  ///< why it cannot be disabled; empty: it can
};

/// The table. A pass may stand in it more than once; its name is for all places.
[[nodiscard]] std::span<const Pass> all_passes();
/// Its beginning: those over functions.
[[nodiscard]] std::span<const Pass> function_passes();

/// Each name once, in the order of the table.
[[nodiscard]] std::vector<std::string_view> pass_names();
/// Those that can be disabled.
[[nodiscard]] std::vector<std::string_view> optional_pass_names();
/// Fails if there is no pass of that name, with the names that there are.
[[nodiscard]] Result<void> check_pass_name(std::string_view name);
/// Fails if no pass has that name, or if it cannot be disabled, with the reason.
[[nodiscard]] Result<void> check_disabled(std::string_view name);

/// A program on its way through the passes, in all forms that it has had so far.
struct Stage {
  ir::FunctionRef function;
  std::optional<TiledFunction> tiled = {};
  std::optional<plan::Plan> plan = {};
  std::optional<plan::Binding> memory = {};
};

/// The latest form: the function, its parts, the steps, or the lives of values and where they lie.
[[nodiscard]] std::string to_text(const Stage& stage);

/// What numbers the symbols of a plan are.
using ChooseSizes = std::function<std::vector<std::int64_t>(std::span<const Ref<ir::Var>> dims)>;

struct PipelineOptions {
  PassOptions passes = {};
  /// Names of passes that do not run. An unknown name, or one that is needed, is an error.
  std::vector<std::string> disabled = {};
  /// Checks what every pass made that changed something; what is wrong is an internal error of that pass.
  bool verify = false;
  /// Called after each pass that ran.
  std::function<void(const Pass&, const Stage&)> after = {};
  /// For the passes over memory, which a device runs itself when it knows the sizes. Null: the compiler does
  /// not run them.
  ChooseSizes sizes = {};
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

/// Validates the function, then runs the passes over functions. All that is wrong with the function is in the
/// error: the first violation, the others as notes.
[[nodiscard]] Result<Outcome> run_passes(const ir::FunctionRef& function,
                                         const PipelineOptions& options = {});

}  // namespace tessera::compiler
