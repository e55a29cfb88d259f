#include "tessera/compile/pipeline.h"

#include <algorithm>
#include <chrono>

#include "tessera/base/text.h"
#include "tessera/compile/canonicalise.h"
#include "tessera/compile/decompose.h"
#include "tessera/compile/drop_dead.h"
#include "tessera/compile/duplicate_cheap.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/fold_batch_norm.h"
#include "tessera/compile/fold_constants.h"
#include "tessera/compile/inline_calls.h"
#include "tessera/compile/join_updates.h"
#include "tessera/compile/merge_equal.h"
#include "tessera/compile/plan_passes.h"
#include "tessera/compile/simplify_algebra.h"
#include "tessera/compile/simplify_views.h"
#include "tessera/ir/walk.h"
#include "tessera/op/validate.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

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
};
// clang-format on

std::size_t statements_in(const ir::Function& function) {
  std::size_t out = 0;
  for (const ir::Function* one : ir::functions_below(function)) out += one->body.size();
  return out;
}

Result<void> verify_after(const Pass& pass, const ir::Function& function) {
  auto fine = check_valid(function);
  if (fine) return {};
  return Error(ErrorCode::internal,
               cat("pass '", pass.name, "' wrote a wrong function: ", fine.error().message()))
      .note(fine.error().to_text());
}

class Runner {
 public:
  Runner(ir::FunctionRef function, const PipelineOptions& options)
      : function_(std::move(function)), options_(options), statements_(statements_in(*function_)) {}

  Result<void> run(const Pass& pass) {
    PassReport report{.name = pass.name, .statements_before = statements_};
    report.ran = !is_disabled(options_, pass.name);
    if (report.ran) TESSERA_TRY(apply(pass, report));
    report.statements_after = statements_;
    reports_.push_back(std::move(report));
    return {};
  }

  Outcome take() && { return {std::move(function_), std::move(reports_)}; }

 private:
  Result<void> apply(const Pass& pass, PassReport& report) {
    PassContext context(options_.passes);
    const auto begin = std::chrono::steady_clock::now();
    auto next = pass.run(function_, context);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (!next) return std::move(next).error().note(cat("in pass '", pass.name, "'"));
    report.microseconds = time.count();
    report.changed = *next != function_;
    report.rewrites = report.changed ? context.count() : 0;
    if (report.changed) {
      function_ = *std::move(next);
      report.notes = context.notes();
      statements_ = statements_in(*function_);
      if (options_.verify) TESSERA_TRY(verify_after(pass, *function_));
    }
    if (options_.after) options_.after(pass, *function_);
    return {};
  }

  ir::FunctionRef function_;
  const PipelineOptions& options_;
  std::size_t statements_;
  std::vector<PassReport> reports_;
};

}  // namespace

std::span<const Pass> tessera::compiler::all_passes() { return passes; }

std::vector<std::string_view> tessera::compiler::pass_names() {
  std::vector<std::string_view> out;
  for (const Pass& pass : passes)
    if (std::find(out.begin(), out.end(), pass.name) == out.end()) out.push_back(pass.name);
  out.push_back("tile");
  for (const PlanPass& pass : plan_passes()) out.push_back(pass.name);
  return out;
}

Result<void> tessera::compiler::check_pass_name(std::string_view name) {
  const auto names = pass_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return Error(ErrorCode::not_found,
               cat("there is no pass '", printable(name), "'; the passes are ", join(names, ", ")));
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
  for (const std::string& name : options.disabled) TESSERA_TRY(check_pass_name(name));
  TESSERA_TRY(check_valid(*function));
  Runner runner(function, options);
  for (const Pass& pass : passes) TESSERA_TRY(runner.run(pass));
  return std::move(runner).take();
}
