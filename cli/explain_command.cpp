#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

#include "cli/command.h"
#include "cli/compile_description.h"
#include "cli/compile_options.h"
#include "cli/pass_report.h"
#include "cli/plan_report.h"
#include "cli/program_file.h"
#include "cli/tensor_sources.h"
#include "cli/variants.h"
#include "tessera/base/text.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/autotune.h"
#include "tessera/engine/devices.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct ExplainOptions : CompileOptions {
  std::vector<std::string> dims;
};

/// What each symbol is for the memory plan: as --dim says, else 64.
class GivenNumbers {
 public:
  static Result<GivenNumbers> read(const ExplainOptions& options) {
    GivenNumbers out;
    out.given_ = TESSERA_TRY(sizes_from(options.dims));
    return out;
  }

  [[nodiscard]] std::vector<std::int64_t> of(std::span<const Ref<ir::Var>> dims) {
    std::vector<std::int64_t> out = usual_sizes(dims);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const auto at = given_.find(dims[d]->name);
      if (at == given_.end()) continue;
      out[d] = at->second;
      used_.insert(at->first);
    }
    return out;
  }

  [[nodiscard]] Result<void> check_all_used() const {
    for (const auto& [name, size] : given_)
      if (used_.count(name) == 0)
        return Error(ErrorCode::invalid_argument, cat("--dim: the program has no size ", in_quotes(name)));
    return {};
  }

 private:
  GivenSizes given_;
  std::set<std::string> used_;
};

struct ExplainedPart {
  compiler::Outcome passes;
  std::optional<PlanReport> plan;
};

/// A program that no plan can express is still explained as far as it goes.
struct Explained {
  std::vector<ExplainedPart> parts;
  std::vector<std::string> data_dependent_sizes;
  std::string why_no_plan;
  std::string device;  ///< its name, and what it found
  std::string remark;  ///< of the device
  std::optional<engine::Tuning> tuning;
  double compile_ms = 0;  ///< passes, tiling and lowering
};

std::string sizes_text(const plan::Plan& plan, std::span<const std::int64_t> sizes) {
  std::string out;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    out += cat(out.empty() ? "for " : ", ", printable(plan.dims[d]->name), " = ", sizes[d]);
  return out.empty() ? "all sizes are numbers" : out + "; --dim NAME=SIZE gives others";
}

Result<Explained> explain_without_plan(const ir::FunctionRef& function,
                                       const compiler::PipelineOptions& pipeline, const Error& why) {
  Explained out;
  out.why_no_plan = why.to_text();
  ExplainedPart part;
  part.passes = TESSERA_TRY(compiler::run_passes(function, pipeline));
  out.parts.push_back(std::move(part));
  return out;
}

/// Explains the functions of one file.
class Explainer {
 public:
  static Result<Explainer> create(const ExplainOptions& options, FileKind kind) {
    Explainer out;
    out.pipeline_ = pipeline_options(options, kind);
    out.autotune_ = options.autotune;
    out.numbers_ = TESSERA_TRY(GivenNumbers::read(options));
    out.device_ = TESSERA_TRY(chosen_device(options.device));
    return out;
  }

  Result<Explained> explain(const ir::FunctionRef& function) {
    const auto begin = std::chrono::steady_clock::now();
    auto tuned = autotune_ ? TESSERA_TRY(engine::autotune(function, *device_, pipeline_))
                           : engine::untuned(function, *device_);
    compiler::PlanOptions options{.pipeline = pipeline_, .tiling = {.keep_candidates = true}};
    options.pipeline.sizes = [this](std::span<const Ref<ir::Var>> dims) { return numbers_.of(dims); };
    auto planned = compiler::plan_program(tuned.function, tuned.target, options);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    if (!planned && planned.error().code() == ErrorCode::unsupported)
      return explain_without_plan(function, pipeline_, planned.error());
    if (!planned) return std::move(planned).error();
    Explained out;
    const std::string found = device_->found();
    out.device = cat(device_->name(), found.empty() ? "" : ": ", found);
    out.remark = device_->remark();
    out.compile_ms = passed.count();
    out.data_dependent_sizes = plan::data_dependent_sizes(planned->program);
    for (compiler::Planned& part : planned->parts) out.parts.push_back(TESSERA_TRY(explain_part(part)));
    if (autotune_) out.tuning = std::move(tuned.tuning);
    return out;
  }

  [[nodiscard]] Result<void> check_all_used() const { return numbers_.check_all_used(); }

 private:
  Result<ExplainedPart> explain_part(compiler::Planned& part) {
    const auto sizes = numbers_.of(part.plan->dims);
    ExplainedPart out{.passes = {part.function, std::move(part.passes)}, .plan = std::nullopt};
    auto report = report_on(part, *device_, sizes);
    if (!report) return std::move(report).error().note(sizes_text(*part.plan, sizes));
    out.plan = *std::move(report);
    return out;
  }

  compiler::PipelineOptions pipeline_;
  bool autotune_ = false;
  GivenNumbers numbers_;
  std::shared_ptr<runtime::Device> device_;
};

/// Predicted and measured, side by side.
std::string tuning_text(const engine::Tuning& tuning) {
  std::string out = cat("tuning", tuning.is_remembered ? ", remembered" : "", ":");
  if (!tuning.why_not.empty()) return cat(out, " ", tuning.why_not, "\n");
  out += cat(" the best prediction is ", std::llround(tuning.predicted_ns), " ns, ", tuning.trials.size(),
             " others were measured\n");
  for (const engine::TuningTrial& trial : tuning.trials)
    out += cat("  no tile from statements ", join(trial.cut.before, ", "), " to ",
               join(trial.cut.behind, ", "), ": predicted ", std::llround(trial.predicted_ns),
               " ns, measured ", std::llround(trial.measured_ns), " ns against ", std::llround(trial.best_ns),
               " ns", trial.is_kept ? ", taken\n" : "\n");
  return out;
}

void write_tuning(JsonWriter& json, const engine::Tuning& tuning) {
  json.key("tuning").begin_object().member("remembered", tuning.is_remembered);
  json.member("not_measured", tuning.why_not).member("predicted_ns", tuning.predicted_ns);
  json.key("trials").begin_array();
  for (const engine::TuningTrial& trial : tuning.trials) {
    json.begin_object()
        .member("before", join(trial.cut.before, ","))
        .member("behind", join(trial.cut.behind, ","));
    json.member("predicted_ns", trial.predicted_ns).member("measured_ns", trial.measured_ns);
    json.member("best_ns", trial.best_ns).member("taken", trial.is_kept).end_object();
  }
  json.end_array().end_object();
}

void write_part(JsonWriter& json, const ExplainedPart& part) {
  write_passes(json, part.passes);
  if (part.plan) write_plan_report(json, *part.plan);
}

/// The members of an object that has been begun.
void write_explained(JsonWriter& json, const Explained& explained) {
  json.member("compile_ms", explained.compile_ms);
  json.member("data_dependent_sizes", explained.data_dependent_sizes);
  if (!explained.why_no_plan.empty()) json.member("no_plan", explained.why_no_plan);
  if (!explained.device.empty()) json.member("device", explained.device);
  if (!explained.remark.empty()) json.member("remark", explained.remark);
  if (explained.tuning) write_tuning(json, *explained.tuning);
  if (explained.parts.size() == 1) {
    write_part(json, explained.parts[0]);
  } else {
    json.key("parts").begin_array();
    for (const ExplainedPart& part : explained.parts) {
      json.begin_object();
      write_part(json, part);
      json.end_object();
    }
    json.end_array();
  }
}

std::string text_of(const Explained& explained) {
  std::string out;
  for (const std::string& line : explained.data_dependent_sizes) out += line + "\n";
  for (std::size_t p = 0; p < explained.parts.size(); ++p) {
    const ExplainedPart& part = explained.parts[p];
    if (explained.parts.size() > 1) out += cat("part ", p + 1, " of ", explained.parts.size(), "\n");
    out += pass_text(part.passes);
    if (part.plan) out += plan_text(*part.plan);
  }
  if (explained.tuning) out += tuning_text(*explained.tuning);
  if (!explained.why_no_plan.empty()) out += cat("no plan: ", explained.why_no_plan, "\n");
  if (!explained.device.empty()) out += cat("device: ", explained.device, "\n");
  if (!explained.remark.empty()) out += cat("remark: ", explained.remark, "\n");
  return out;
}

void print(const JsonWriter& json) { std::printf("%s\n", json.text().c_str()); }
void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Of a description with host functions: what is compiled between them.
Result<Answer> explain_groups(const ProgramFile& file, const ExplainOptions& options,
                              const std::string& why) {
  JsonWriter json(JsonWriter::Style::indented);
  const DescribedGroups described = TESSERA_TRY(read_description_groups(file));
  std::string text = cat(why, "\n", to_text(described.host_functions));
  json.begin_object().member("no_plan", why);
  write_json(json, described.host_functions);
  json.key("groups").begin_array();
  Explainer explainer = TESSERA_TRY(Explainer::create(options, file.kind));
  for (const DescribedGroup& group : described.groups) {
    const Explained explained = TESSERA_TRY(explainer.explain(group.function));
    text += cat("ops ", join(group.nodes, ", "), "\n", text_of(explained));
    json.begin_object().member("nodes", group.nodes);
    write_explained(json, explained);
    json.end_object();
  }
  json.end_array().end_object();
  TESSERA_TRY(explainer.check_all_used());
  options.json ? print(json) : print(text);
  return Answer::yes;
}

/// The buffers of a description that keep what a run leaves in them for the next.
std::vector<std::string> state_names(const NamedProgram& program) {
  std::vector<std::string> out;
  for (const std::uint32_t output : program.names.states)
    out.push_back(in_quotes(program.names.outputs[output]));
  return out;
}

std::string text_of(const NamedProgram& program, std::span<const Explained> explained) {
  std::string out;
  for (std::size_t v = 0; v < explained.size(); ++v)
    out += cat(variant_title(program, v), text_of(explained[v]));
  const auto states = state_names(program);
  if (!states.empty()) out += cat("from run to run: ", join(states, ", "), "\n");
  return out;
}

JsonWriter json_of(const NamedProgram& program, std::span<const Explained> explained) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("states", state_names(program));
  write_variants(json, program, [&](std::size_t v) { write_explained(json, explained[v]); });
  json.end_object();
  return json;
}

/// A plan in a file: what it is. Why it is so, only the compiler of the program can say.
struct PlanInFile {
  std::string title;
  plan::PlanRef plan;
};

Result<Answer> explain_plans(const std::string& device_name, std::span<const PlanInFile> plans,
                             const ExplainOptions& options) {
  if (options.autotune) return wrong("--autotune: this is measured when a plan is made");
  const auto device = TESSERA_TRY(engine::find_device(options.device.empty() ? device_name : options.device));
  GivenNumbers numbers = TESSERA_TRY(GivenNumbers::read(options));
  std::string text = cat("a compiled plan for ", printable(device_name), "\n");
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("device", device_name).key("plans").begin_array();
  for (const PlanInFile& one : plans) {
    compiler::Planned planned{.plan = one.plan, .function = {}, .passes = {}};
    const auto sizes = numbers.of(one.plan->dims);
    auto report = report_on(planned, *device, sizes);
    if (!report) return std::move(report).error().note(sizes_text(*one.plan, sizes));
    text += cat(one.title, one.title.empty() ? "" : "\n", plan_text(*report));
    json.begin_object().member("title", one.title);
    write_plan_report(json, *report);
    json.end_object();
  }
  json.end_array().end_object();
  TESSERA_TRY(numbers.check_all_used());
  options.json ? print(json) : print(text);
  return Answer::yes;
}

Result<Answer> explain_package(const ProgramFile& file, const ExplainOptions& options) {
  const plan::Package package = TESSERA_TRY(read_plan(file));
  std::vector<PlanInFile> plans;
  for (std::size_t v = 0; v < package.programs.size(); ++v) {
    const auto& parts = package.programs[v].parts;
    const std::string variant = plan::variant_text(package.inputs, package.flags, v);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::string part = parts.size() < 2 ? "" : cat("part ", p + 1, " of ", parts.size());
      plans.push_back({cat(variant, variant.empty() || part.empty() ? "" : ", ", part), parts[p].plan});
    }
  }
  return explain_plans(package.device, plans, options);
}

Result<Answer> explain_graph(const ProgramFile& file, const ExplainOptions& options) {
  const engine::GraphPackage package = TESSERA_TRY(read_graph(file));
  std::vector<PlanInFile> plans;
  for (std::size_t g = 0; g < package.plans.size(); ++g) {
    std::vector<std::string> nodes;
    for (const std::uint32_t node : package.grouping.groups[g].nodes)
      nodes.push_back(printable(package.program->description->nodes[node].id));
    if (package.plans[g] != nullptr) plans.push_back({cat("ops ", join(nodes, ", ")), package.plans[g]});
  }
  return explain_plans(package.device, plans, options);
}

Result<Answer> run_explain(const ExplainOptions& options) {
  const ProgramFile file = TESSERA_TRY(open_program(options.file));
  TESSERA_TRY(check_choice(file, {.name = options.function}));
  if (file.kind == FileKind::plan) return explain_package(file, options);
  if (file.kind == FileKind::graph) return explain_graph(file, options);
  auto program = read_program(file, {.name = options.function, .last_of_several = true});
  if (is_no_program(file, program)) return explain_groups(file, options, program.error().message());
  const NamedProgram named = TESSERA_TRY(std::move(program));
  print_warnings(named, file.kind);
  Explainer explainer = TESSERA_TRY(Explainer::create(options, file.kind));
  std::vector<Explained> explained;
  for (const ir::FunctionRef& function : named.functions)
    explained.push_back(TESSERA_TRY(explainer.explain(function)));
  TESSERA_TRY(explainer.check_all_used());
  options.json ? print(json_of(named, explained)) : print(text_of(named, explained));
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_explain(Commands& commands) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command =
      commands.add("explain",
                   "say what the compiler makes of a function, a model, a graph description or a plan in a "
                   "file: what each "
                   "pass did and where, the tiles and what lost, the memory plan, what a change would take",
                   "  tessera explain examples/ir/mlp.tsr --dim N=32\n"
                   "  tessera explain examples/describe/running_total.json\n"
                   "  tessera explain mlp.plan --dim N=32\n"
                   "  tessera explain model.onnx --json",
                   [options] { return run_explain(*options); });
  add_options(command, *options);
  command.add_option("--dim", options->dims, "a size for the memory plan: NAME=SIZE; 64 if not given");
}
