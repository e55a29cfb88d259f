#include <cstdio>

#include "cli/command.h"
#include "cli/compile_description.h"
#include "cli/compile_options.h"
#include "cli/files.h"
#include "cli/pass_dumps.h"
#include "cli/pass_report.h"
#include "cli/program_file.h"
#include "cli/variants.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/compile/unused.h"
#include "tessera/engine/autotune.h"
#include "tessera/ir/print.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct CompileCommandOptions : CompileOptions {
  std::vector<std::string> dump_after;
  std::string output;  ///< where the plan goes; empty: no plan is made
};

/// A function after the passes; of a program that is cut, each part.
struct CompiledFunction {
  std::vector<compiler::Outcome> parts;
};

/// What was written, part by part.
void print_written(const NamedProgram& program, std::span<const compiler::PlannedProgram> planned,
                   const std::string& device, const CompileCommandOptions& options, const PassDumps& dumps) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("file", options.output).member("device", device);
  write_variants(json, program, [&](std::size_t v) {
    json.member("data_dependent_sizes", plan::data_dependent_sizes(planned[v].program));
    json.key("parts").begin_array();
    for (const compiler::Planned& part : planned[v].parts) {
      json.begin_object().member("steps", part.plan->steps.size());
      write_passes(json, {part.function, part.passes});
      json.end_object();
    }
    json.end_array();
  });
  dumps.write(json);
  std::printf("%s\n", json.end_object().text().c_str());
}

Result<compiler::PlannedProgram> plan_variant(const ir::FunctionRef& function, runtime::Device& device,
                                              const compiler::PipelineOptions& pipeline,
                                              const CompileCommandOptions& options) {
  const auto tuned = options.autotune ? TESSERA_TRY(engine::autotune(function, device, pipeline))
                                      : engine::untuned(function, device);
  return compiler::plan_program(tuned.function, tuned.target, {.pipeline = pipeline});
}

Result<void> write_plan(const NamedProgram& program, const compiler::PipelineOptions& pipeline,
                        const CompileCommandOptions& options, PassDumps& dumps) {
  const auto device = TESSERA_TRY(chosen_device(options.device));
  const std::string name(device->name());
  std::vector<compiler::PlannedProgram> planned;
  std::vector<plan::Program> programs;
  for (std::size_t v = 0; v < program.functions.size(); ++v) {
    dumps.about(program.variant_text(v));
    planned.push_back(TESSERA_TRY(plan_variant(program.functions[v], *device, pipeline, options)));
    programs.push_back(planned.back().program);
  }
  TESSERA_TRY(plan::save(compiler::package(*program.functions[0], std::move(programs), name, program.names),
                         options.output));
  options.json ? print_written(program, planned, name, options, dumps) : dumps.print();
  return {};
}

/// The passes over functions; where a later one is to be shown, all of them, for the device.
Result<CompiledFunction> compile_function(const ir::FunctionRef& function,
                                          const compiler::PipelineOptions& pipeline,
                                          const CompileCommandOptions& options, const PassDumps& dumps) {
  CompiledFunction out;
  if (!dumps.want_plan()) {
    out.parts.push_back(TESSERA_TRY(compiler::run_passes(function, pipeline)));
    return out;
  }
  const auto device = TESSERA_TRY(chosen_device(options.device));
  auto planned = TESSERA_TRY(plan_variant(function, *device, pipeline, options));
  for (compiler::Planned& part : planned.parts) out.parts.push_back({part.function, std::move(part.passes)});
  return out;
}

void write_function(JsonWriter& json, const compiler::Outcome& part) {
  write_passes(json, part);
  json.member("function", ir::print(*part.function));
}

Result<void> print_functions(const NamedProgram& program, const compiler::PipelineOptions& pipeline,
                             const CompileCommandOptions& options, PassDumps& dumps) {
  std::vector<CompiledFunction> compiled;
  for (std::size_t v = 0; v < program.functions.size(); ++v) {
    dumps.about(program.variant_text(v));
    compiled.push_back(TESSERA_TRY(compile_function(program.functions[v], pipeline, options, dumps)));
  }
  if (!options.json) {
    dumps.print();
    std::string text;
    for (std::size_t v = 0; v < compiled.size(); ++v) {
      text += cat(compiled.size() > 1 ? "# " : "", variant_title(program, v));
      for (const compiler::Outcome& part : compiled[v].parts) text += ir::print(*part.function);
    }
    return write_text("-", text);
  }
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object();
  write_variants(json, program, [&](std::size_t v) {
    if (compiled[v].parts.size() == 1) return write_function(json, compiled[v].parts[0]);
    json.key("parts").begin_array();
    for (const compiler::Outcome& part : compiled[v].parts) {
      json.begin_object();
      write_function(json, part);
      json.end_object();
    }
    json.end_array();
  });
  dumps.write(json);
  std::printf("%s\n", json.end_object().text().c_str());
  return {};
}

Result<Answer> run_compile(const CompileCommandOptions& options) {
  TESSERA_TRY(chosen_device(options.device));
  if (!options.output.empty()) TESSERA_TRY(check_can_write(options.output));
  PassDumps dumps;
  TESSERA_TRY(dumps.want(options.dump_after));
  const ProgramFile file = TESSERA_TRY(open_program(options.file));
  compiler::PipelineOptions pipeline = pipeline_options(options, file.kind);
  dumps.follow(pipeline);
  const FunctionChoice choice{.name = options.function, .last_of_several = true};
  const DescriptionOptions described{
      .device = options.device, .pipeline = pipeline, .json = options.json, .dumps = &dumps};
  if (file.kind == FileKind::description && options.output.empty())
    return compile_description(file, choice, described);
  auto read = read_program(file, choice);
  if (is_no_program(file, read)) {
    if (options.autotune)
      return Error(ErrorCode::invalid_argument,
                   "--autotune: the description is no program, which is what is measured");
    TESSERA_TRY(write_graph(file, options.output, described));
    return Answer::yes;
  }
  const NamedProgram program = TESSERA_TRY(std::move(read));
  print_warnings(program, file.kind);
  TESSERA_TRY(options.output.empty() ? print_functions(program, pipeline, options, dumps)
                                     : write_plan(program, pipeline, options, dumps));
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_options(CLI::App& command, CompileOptions& options) {
  command
      .add_option("FILE", options.file,
                  "a function as IR text, a graph description as JSON (- for either on standard input), or a "
                  "model.onnx")
      ->required();
  command.add_option("--function", options.function,
                     "which function of a module as IR text; the last if not given");
  command
      .add_option("--disable", options.disabled,
                  cat("leave a pass out: ", join(compiler::optional_pass_names(), ", ")))
      ->allow_extra_args(false);
  command
      .add_option("--floats", options.floats,
                  "exact: no bit changes; rounding: the default; fast: as real numbers")
      ->check(CLI::IsMember({"exact", "rounding", "fast"}));
  command.add_flag("--decompose", options.decompose, "write every composite op out as its parts");
  command.add_flag("--verify", options.verify, "check what every pass made");
  command.add_flag("--autotune", options.autotune,
                   "measure tilings that are predicted to be close, once per machine, and take the fastest");
  command.add_option("--device", options.device, device_option_text("what the plan is for: "));
  command.add_flag("--json", options.json, "print JSON");
}

std::vector<std::int64_t> tessera::cli::usual_sizes(std::span<const Ref<ir::Var>> dims) {
  return std::vector<std::int64_t>(dims.size(), 64);
}

compiler::PipelineOptions tessera::cli::pipeline_options(const CompileOptions& options, FileKind kind) {
  compiler::PipelineOptions out;
  out.sizes = usual_sizes;
  if (kind == FileKind::model) out.passes.fold_weights();
  out.disabled = options.disabled;
  out.verify = options.verify;
  if (options.floats == "exact") out.passes.floats = compiler::FloatRules::exact;
  if (options.floats == "fast") out.passes.floats = compiler::FloatRules::fast;
  if (options.decompose) out.passes.takes = [](const op::CallInfo&) { return false; };
  return out;
}

void tessera::cli::print_warnings(const NamedProgram& program, FileKind kind) {
  if (kind != FileKind::text) return;
  for (const ir::FunctionRef& function : program.functions)
    for (const compiler::Note& note : compiler::find_unused(function))
      std::fprintf(stderr, "tessera: warning: %s: %s\n", printable(note.at.resolve().to_text()).c_str(),
                   printable(note.what).c_str());
}

void tessera::cli::add_compile(Commands& commands) {
  auto options = std::make_shared<CompileCommandOptions>();
  CLI::App& command = commands.add(
      "compile",
      "run the passes of the compiler over a function, a model or a graph description and print what they "
      "make of it, or write a plan",
      "  tessera compile examples/ir/mlp.tsr\n"
      "  tessera compile model.onnx --disable fold_batch_norm --dump-after canonicalise\n"
      "  tessera compile F.tsr --floats exact --verify --json\n"
      "  tessera compile model.onnx -o model.plan\n"
      "  tessera compile examples/describe/particles.json -o particles.plan\n"
      "  tessera compile examples/describe/particles.json --device cpu    what runs, with its plans",
      [options] { return run_compile(*options); });
  add_options(command, *options);
  command.add_option("-o,--output", options->output, "write the plan into this file, for `tessera run`")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("expected the name of a file") : std::string();
      });
  command
      .add_option("--dump-after", options->dump_after,
                  cat("print what this pass made too: ", join(compiler::pass_names(), ", ")))
      ->allow_extra_args(false);
}
