#include "tessera/compile/pipeline.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/compile/canonicalise.h"
#include "tessera/compile/decompose.h"
#include "tessera/compile/drop_dead.h"
#include "tessera/compile/duplicate_cheap.h"
#include "tessera/compile/fold_batch_norm.h"
#include "tessera/compile/fold_constants.h"
#include "tessera/compile/inline_calls.h"
#include "tessera/compile/join_updates.h"
#include "tessera/compile/lower.h"
#include "tessera/compile/merge_equal.h"
#include "tessera/compile/order_steps.h"
#include "tessera/compile/pass_runner.h"
#include "tessera/compile/reuse_in_place.h"
#include "tessera/compile/simplify_algebra.h"
#include "tessera/compile/simplify_views.h"
#include "tessera/ir/print.h"
#include "tessera/op/validate.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

Result<plan::Binding> liveness(const plan::Plan& plan, std::span<const std::int64_t> sizes) {
  return plan::find_lives(plan, sizes, TESSERA_TRY(plan::contiguous_inputs(plan, sizes)));
}

void assign_buffers(const plan::Plan& plan, plan::Binding& binding) { plan::assign_buffers(plan, binding); }

constexpr std::string_view no_plan = "there is no plan without it";
constexpr std::string_view by_device = "a device that runs the plan does it when the sizes are known";

// clang-format off
constexpr Pass passes[] = {
    {"canonicalise",     "one way to write one thing",                              canonicalise},
    {"fold_constants",   "calls of constants become constants",                     fold_constants},
    {"fold_batch_norm",  "batch norms go into the weights of convolutions",         fold_batch_norm},
    {"decompose",        "composites that the target has no kernel for, by parts",  decompose},
    {"simplify_algebra", "rules of algebra that hold for the numbers at hand",      simplify_algebra},
    {"join_updates",     "updates that leave nothing of an array are its parts",    join_updates},
    {"simplify_views",   "reshapes, transposes and broadcasts that cancel",         simplify_views},
    {"fold_constants",   "what the passes before made of constants",                fold_constants},
    {"merge_equal",      "what is computed twice is computed once",                 merge_equal},
    {"inline_calls",     "what a function computes takes the place of its call",    inline_calls},
    {"drop_dead",        "what nothing needs goes",                                 drop_dead},
    {"duplicate_cheap",  "cheap values are computed where they are used",           duplicate_cheap},
    {"tile",             "statements that one kernel or library call computes",     tile},
    {"lower",            "parts become steps, variables values of a plan",          lower, no_plan},
    {"order_steps",      "an order of the steps that needs less memory",            order_steps},
    {"reuse_in_place",   "results that take the memory of a dying input",           reuse_in_place},
    {"liveness",         "from which step to which a value is needed",              liveness, by_device},
    {"assign_buffers",   "values share memory that do not live at once",            assign_buffers, by_device},
};
// clang-format on

constexpr std::size_t count_function_passes() {
  std::size_t out = 0;
  while (std::holds_alternative<PassFunction>(passes[out].run)) ++out;
  return out;
}

}  // namespace

std::span<const Pass> tessera::compiler::all_passes() { return passes; }

std::span<const Pass> tessera::compiler::function_passes() {
  return all_passes().first(count_function_passes());
}

std::vector<std::string_view> tessera::compiler::pass_names() {
  std::vector<std::string_view> out;
  for (const Pass& pass : passes)
    if (std::find(out.begin(), out.end(), pass.name) == out.end()) out.push_back(pass.name);
  return out;
}

std::vector<std::string_view> tessera::compiler::optional_pass_names() {
  std::vector<std::string_view> out = pass_names();
  std::erase_if(out, [](std::string_view name) { return !check_disabled(name); });
  return out;
}

Result<void> tessera::compiler::check_pass_name(std::string_view name) {
  const auto names = pass_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return Error(ErrorCode::not_found,
               cat("there is no pass '", printable(name), "'; the passes are ", join(names, ", ")));
}

Result<void> tessera::compiler::check_disabled(std::string_view name) {
  TESSERA_TRY(check_pass_name(name));
  for (const Pass& pass : passes)
    if (pass.name == name && !pass.why_needed.empty())
      return Error(ErrorCode::invalid_argument,
                   cat("pass '", pass.name, "' cannot be disabled: ", pass.why_needed));
  return {};
}

bool tessera::compiler::is_disabled(const PipelineOptions& options, std::string_view pass) {
  return std::find(options.disabled.begin(), options.disabled.end(), pass) != options.disabled.end();
}

Result<void> tessera::compiler::check_valid(const ir::Function& function) {
  std::vector<Error> errors = op::validate(function);
  if (errors.empty()) return {};
  Error first = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size(); ++i) (void)std::move(first).note(errors[i].to_text());
  return first;
}

Result<Outcome> tessera::compiler::run_passes(const ir::FunctionRef& function,
                                              const PipelineOptions& options) {
  for (const std::string& name : options.disabled) TESSERA_TRY(check_disabled(name));
  TESSERA_TRY(check_valid(*function));
  const pattern::Target no_target;
  const TilingOptions no_tiling;
  PassRunner runner(function, options, no_target, no_tiling);
  for (const Pass& pass : function_passes()) TESSERA_TRY(runner.run(pass));
  return Outcome{runner.stage().function, runner.take_reports()};
}

std::string tessera::compiler::to_text(const Stage& stage) {
  if (stage.memory) return plan::to_text(*stage.plan, *stage.memory);
  if (stage.plan) return plan::to_text(*stage.plan);
  if (stage.tiled) return to_text(*stage.function, *stage.tiled);
  return ir::print(*stage.function);
}
