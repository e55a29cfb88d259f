#include <chrono>
#include <cstdio>

#include "cli/command.h"
#include "cli/compile_options.h"
#include "cli/pass_report.h"
#include "cli/plan_report.h"
#include "cli/program_file.h"
#include "cli/tensor_sources.h"
#include "tessera/base/text.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct Options : CompileOptions {
  std::string device = default_plan_device;
  std::vector<std::string> dims;
};

/// What each symbol is for the memory plan: as --dim says, else 64.
Result<std::vector<std::int64_t>> sizes_of(const ir::Function& function, const Options& options) {
  constexpr std::int64_t usual = 64;
  std::vector<std::int64_t> out(function.dims.size(), usual);
  for (const auto& [name, size] : TESSERA_TRY(sizes_from(options.dims))) {
    bool is_known = false;
    for (std::size_t d = 0; d < out.size(); ++d)
      if (function.dims[d]->name == name) {
        out[d] = size;
        is_known = true;
      }
    if (!is_known)
      return Error(ErrorCode::invalid_argument, cat("--dim: the program has no size ", in_quotes(name)));
  }
  return out;
}

/// A program that no plan can express is still explained as far as it goes.
struct Explained {
  compiler::Outcome passes;
  std::optional<PlanReport> plan;
  std::string why_no_plan;
  double compile_ms = 0;  ///< passes, tiling and lowering
};

Result<Explained> explain(const Options& options) {
  const NamedProgram program = TESSERA_TRY(read_program(options.file));
  const auto sizes = TESSERA_TRY(sizes_of(*program.function, options));
  const auto device = TESSERA_TRY(engine::find_device(options.device));
  Explained out;
  const auto begin = std::chrono::steady_clock::now();
  auto planned =
      compiler::plan_function(program.function, device->target(), {.pipeline = pipeline_options(options)});
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  out.compile_ms = passed.count();
  if (!planned) {
    if (planned.error().code() != ErrorCode::unsupported) return std::move(planned).error();
    out.why_no_plan = planned.error().to_text();
    out.passes = TESSERA_TRY(compiler::run_passes(program.function, pipeline_options(options)));
    return out;
  }
  out.passes = {planned->function, std::move(planned->passes)};
  out.plan = TESSERA_TRY(report_on(*planned->function, planned->plan, device->target(), sizes));
  return out;
}

void print_json(const Explained& explained) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object();
  json.member("compile_ms", explained.compile_ms);
  write_passes(json, explained.passes);
  if (explained.plan)
    write_plan_report(json, *explained.plan);
  else
    json.member("no_plan", explained.why_no_plan);
  std::printf("%s\n", json.end_object().text().c_str());
}

Result<Answer> run_explain(const Options& options) {
  const Explained explained = TESSERA_TRY(explain(options));
  if (options.json) {
    print_json(explained);
    return Answer::yes;
  }
  const std::string text =
      cat(pass_text(explained.passes),
          explained.plan ? plan_text(*explained.plan) : cat("no plan: ", explained.why_no_plan, "\n"));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_explain(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      commands.add("explain",
                   "say what the compiler makes of a function: what each pass did and where, the tiles and "
                   "what lost, the memory plan, what a change would take",
                   "  tessera explain examples/ir/mlp.tsr --dim N=32\n"
                   "  tessera explain model.onnx --json",
                   [options] { return run_explain(*options); });
  add_options(command, *options);
  command.add_option("--device", options->device,
                     cat("what the plan is for: ", join(engine::device_names(), ", ")));
  command.add_option("--dim", options->dims, "a size for the memory plan: NAME=SIZE; 64 if not given");
}
