#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/program_file.h"
#include "cli/run_options.h"
#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_package.h"
#include "tessera/plan/package.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

Result<Answer> run_file(const RunOptions& options) {
  const bool is_plan = plan::is_package(options.file) || engine::is_graph(options.file);
  const bool is_model = is_onnx_name(options.file) && !is_plan;
  if (options.autotune && (is_plan || is_model))
    return Error(ErrorCode::invalid_argument,
                 "--autotune: this is measured when a plan is made: tessera compile FILE --autotune -o PLAN");
  if (!options.trace.empty()) TESSERA_TRY(check_can_write(options.trace));
  if (!options.outputs.folder.empty()) TESSERA_TRY(check_can_make(options.outputs.folder));
  const RunOutcome outcome = TESSERA_TRY(is_model ? run_model(options) : run_plan(options));
  TESSERA_TRY(show(outcome, options.outputs));
  // Standard output is JSON alone where that is asked for.
  if (options.profile) std::fputs(outcome.profile.to_text().c_str(), options.outputs.json ? stderr : stdout);
  if (!options.trace.empty()) TESSERA_TRY(write_text(options.trace, outcome.profile.to_json()));
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_run(Commands& commands) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = commands.add(
      "run", "run an ONNX model, a compiled plan, a graph description, or a function as IR text",
      "  tessera run model.onnx --input x=x.npy --input mask=raw:i64:1x128:mask.bin\n"
      "  tessera run model.onnx --input inputs.npz --output results\n"
      "  tessera run model.onnx --random 1 --dim batch=4 --dim x:2=224 --repeat 5\n"
      "  tessera run examples/describe/running_total.json --random 1\n"
      "  tessera run mlp.plan --input x=x.npy --parameter 0=0.5\n"
      "  tessera run model.onnx --device cuda:0 --random 1 --repeat 5 --profile --trace run.json",
      [options] { return run_file(*options); });
  command
      .add_option("FILE", options->file,
                  "model.onnx, what `tessera compile -o` wrote, a graph description as JSON, or IR text; "
                  "- is standard input")
      ->required();
  command.add_option("--function", options->function, "which function, if the text has several");
  add_tensor_source_options(command, options->inputs);
  command.add_option("--parameter", options->parameters, "of a plan: SLOT=VALUE");
  command.add_option("--output", options->outputs.folder, "save the outputs as .npy files in this folder");
  command.add_option("--device", options->device,
                     cat("one of ", join(engine::device_names(), ", "),
                         "; else a plan runs on the one it was made for, all others on what TESSERA_DEVICE "
                         "says, or the cpu"));
  command.add_option("--repeat", options->repeat, "run so often and show the times")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--profile", options->profile, "show what each kernel took, over all runs");
  command.add_option("--trace", options->trace,
                     "write when each kernel ran, for chrome://tracing and Perfetto");
  command.add_flag("--autotune", options->autotune,
                   "of a program that is compiled first: measure tilings that are predicted to be close");
  command
      .add_option("--seconds", options->seconds,
                  "give up a run after this time, also inside of loops and long steps")
      ->check(finite_number);
  command.add_option("--work", options->work, "the most multiply-adds of one run")->check(finite_number);
  command.add_flag("--json", options->outputs.json, "print all elements as JSON");
  command.add_flag("--quiet", options->outputs.quiet,
                   "show neither progress nor outputs, only the times of --repeat");
}
