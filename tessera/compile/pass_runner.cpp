#include "tessera/compile/pass_runner.h"

#include <chrono>

#include "tessera/base/text.h"
#include "tessera/compile/verify_stage.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

std::size_t statements_in(const ir::Function& function) {
  std::size_t out = 0;
  for (const ir::Function* one : ir::functions_below(function)) out += one->body.size();
  return out;
}

template <class Work>
auto timed(PassReport& report, const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  auto out = work();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  report.microseconds = time.count();
  return out;
}

void set_unit(PassReport& report, std::string_view unit, std::size_t before, std::size_t after) {
  report.unit = unit;
  report.statements_before = before;
  report.statements_after = after;
}

}  // namespace

PassRunner::PassRunner(ir::FunctionRef function, const PipelineOptions& options,
                       const pattern::Target& target, const TilingOptions& tiling)
    : stage_{.function = std::move(function)},
      options_(options),
      target_(target),
      tiling_(tiling),
      statements_(statements_in(*stage_.function)) {}

/// Passes over memory need numbers for the sizes.
bool PassRunner::is_to_run(const Pass& pass) const {
  if (std::holds_alternative<LivenessPass>(pass.run)) return options_.sizes != nullptr;
  if (std::holds_alternative<BufferPass>(pass.run)) return stage_.memory.has_value();
  return !is_disabled(options_, pass.name);
}

Result<void> PassRunner::run(const Pass& pass) {
  PassReport report{.name = pass.name, .statements_before = statements_, .statements_after = statements_};
  report.ran = is_to_run(pass);
  // There are no steps without a tiling: disabled, every statement is one.
  if (report.ran || std::holds_alternative<TilePass>(pass.run))
    TESSERA_TRY(apply(pass, report));
  else if (stage_.plan)
    set_unit(report, "steps", stage_.plan->steps.size(), stage_.plan->steps.size());
  reports_.push_back(std::move(report));
  return {};
}

Result<void> PassRunner::apply(const Pass& pass, PassReport& report) {
  auto done = std::visit([&](auto run) { return apply(run, report); }, pass.run);
  if (!done) return std::move(done).error().note(cat("in pass '", pass.name, "'"));
  if (!report.ran) return {};
  const bool is_new_form = !std::holds_alternative<PassFunction>(pass.run);
  if (options_.verify && (report.changed || is_new_form)) TESSERA_TRY(verify_after(pass, stage_));
  if (options_.after) options_.after(pass, stage_);
  return {};
}

Result<void> PassRunner::apply(PassFunction run, PassReport& report) {
  PassContext context(options_.passes);
  auto next = timed(report, [&] { return run(stage_.function, context); });
  if (!next) return std::move(next).error();
  report.changed = *next != stage_.function;
  if (!report.changed) return {};
  stage_.function = *std::move(next);
  report.rewrites = context.count();
  report.notes = context.notes();
  report.statements_after = statements_ = statements_in(*stage_.function);
  return {};
}

Result<void> PassRunner::apply(TilePass run, PassReport& report) {
  const pattern::Target no_tiles{.name = target_.name};
  stage_.tiled = TESSERA_TRY(
      timed(report, [&] { return run(*stage_.function, report.ran ? target_ : no_tiles, tiling_); }));
  set_unit(report, "statements", stage_.function->body.size(), stage_.tiled->parts.size());
  report.changed = report.statements_after != report.statements_before;
  report.rewrites = report.statements_before - report.statements_after;
  return {};
}

Result<void> PassRunner::apply(LowerPass run, PassReport& report) {
  stage_.plan = TESSERA_TRY(timed(report, [&] { return run(*stage_.function, *stage_.tiled); }));
  set_unit(report, "steps", stage_.tiled->parts.size(), stage_.plan->steps.size());
  report.changed = true;
  report.rewrites = report.statements_after;
  return {};
}

Result<void> PassRunner::apply(PlanPass run, PassReport& report) {
  report.rewrites = timed(report, [&] { return run(*stage_.plan); });
  set_unit(report, "steps", stage_.plan->steps.size(), stage_.plan->steps.size());
  report.changed = report.rewrites != 0;
  return {};
}

/// Sizes that the plan does not allow are no error of the program: the pass did not run, and says why.
Result<void> PassRunner::apply(LivenessPass run, PassReport& report) {
  const auto sizes = options_.sizes(stage_.plan->dims);
  auto lives = timed(report, [&] { return run(*stage_.plan, sizes); });
  set_unit(report, "values", stage_.plan->values.size(), lives ? lives->temporaries.size() : 0);
  report.ran = report.changed = lives.ok();
  if (!lives) {
    report.notes.push_back({lives.error().message(), {}});
    return {};
  }
  report.rewrites = lives->temporaries.size();
  stage_.memory = *std::move(lives);
  return {};
}

Result<void> PassRunner::apply(BufferPass run, PassReport& report) {
  timed(report, [&] {
    run(*stage_.plan, *stage_.memory);
    return 0;
  });
  const std::size_t values = stage_.memory->temporaries.size();
  set_unit(report, "values", values, values);
  report.changed = true;
  report.rewrites = values;
  return {};
}
