#include "cli/compile_description.h"

#include <algorithm>
#include <cstdio>

#include "cli/files.h"
#include "tessera/base/json.h"
#include "tessera/describe/op_group.h"
#include "tessera/describe/read_json.h"

using namespace tessera;
using namespace tessera::cli;
using description::Grouping;
using description::OpGroup;
using description::Program;
using description::StepKind;
using description::Unit;
using engine::GraphPackage;

namespace {

/// All that is wrong with a description is one error.
Result<std::shared_ptr<const Program>> checked_program(const ProgramFile& file) {
  auto reading = TESSERA_TRY(description::read_description(shown(file.path), file.content));
  auto validation = description::validate(
      std::make_shared<const description::Description>(std::move(reading.description)), nullptr);
  description::Report problems = std::move(reading.problems);
  problems.add(std::move(validation.report));
  if (problems.ok()) return std::move(validation.program);
  return Error(ErrorCode::invalid_argument, cat("the description is not valid\n", problems.to_text()),
               {shown(file.path), 0, 0});
}

/// Where the nodes and regions of blocks stand in the file.
std::vector<plan::SourceBlock> blocks_of(const description::Description& d) {
  std::vector<plan::SourceBlock> out;
  const auto add = [&](const auto& thing) {
    const SourceSpan span = d.span_of(thing.at);
    if (!thing.block.empty() && span.known())
      out.push_back({span.file, span.line, description::block_path(d, thing.block)});
  };
  std::for_each(d.nodes.begin(), d.nodes.end(), add);
  std::for_each(d.regions.begin(), d.regions.end(), add);
  return out;
}

std::vector<std::string> node_names(const Program& program, const OpGroup& group) {
  std::vector<std::string> out;
  for (const std::uint32_t node : group.nodes)
    out.push_back(description::shown(program.description->nodes[node].id));
  return out;
}

std::string title(const Program& program, const OpGroup& group) {
  return cat("ops ", join(node_names(program, group), ", "));
}

/// What runs on the device that the options name.
Result<GraphPackage> compiled(const ProgramFile& file, const DescriptionOptions& options) {
  const auto device = TESSERA_TRY(chosen_device(options.device));
  return engine::compile_graph(
      TESSERA_TRY(checked_program(file)), *device, {.pipeline = options.pipeline},
      [&](const Program& program, const OpGroup& group) { options.dumps->about(title(program, group)); });
}

std::string title(const Program& program, std::uint32_t scope) {
  if (scope == 0) return "launch";
  const auto& [region, branch, parent, depth] = program.graph.scopes[scope];
  return cat(to_string(program.description->regions[region].kind), " region ",
             description::shown(program.description->regions[region].id), ", branch ", branch);
}

std::string step_text(const Program& program, const description::Step& step) {
  switch (step.kind) {
    case StepKind::node: {
      const auto& node = program.description->nodes[step.index];
      return cat(to_string(node.kind), " node ", description::shown(node.id), ": ", printable(node.call));
    }
    case StepKind::region:
      return cat(to_string(program.description->regions[step.index].kind), " region ",
                 description::shown(program.description->regions[step.index].id));
    case StepKind::reset_counter:
      return cat("reset the counter of ", description::shown(program.graph.buffers[step.index].name));
    case StepKind::zero:
      return cat("zero ", description::shown(program.graph.buffers[step.index].name));
  }
  return "";
}

std::string indented(const std::string& text) {
  std::string out = "      ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "      ";
  }
  return out;
}

std::string plan_text(const GraphPackage& package, std::size_t group) {
  const plan::PlanRef& plan = package.plans[group];
  return plan == nullptr ? "no plan can say this: it runs node by node\n" : plan::to_text(*plan);
}

std::string unit_text(const GraphPackage& package, std::uint32_t scope, const Unit& unit) {
  const Program& program = *package.program;
  const std::string level = cat("  level ", unit.level, ": ");
  if (!unit.is_group)
    return cat(level, step_text(program, program.schedule.sequences[scope].steps[unit.index]), "\n");
  const OpGroup& group = package.grouping.groups[unit.index];
  return cat(level, "ops ", join(node_names(program, group), ", "), "\n",
             indented(plan_text(package, unit.index)));
}

void print_text(const GraphPackage& package) {
  std::string out;
  for (std::uint32_t scope = 0; scope < package.grouping.units.size(); ++scope) {
    out += cat(title(*package.program, scope), ":\n");
    for (const Unit& unit : package.grouping.units[scope]) out += unit_text(package, scope, unit);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
}

/// What was written.
void print_json(const GraphPackage& package, const std::string& output, const PassDumps& dumps) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("file", output).member("device", package.device);
  write_json(json, host_functions_of(*package.program->description));
  json.key("groups").begin_array();
  for (std::size_t g = 0; g < package.plans.size(); ++g) {
    const std::size_t steps = package.plans[g] == nullptr ? 0 : package.plans[g]->steps.size();
    json.begin_object().member("nodes", node_names(*package.program, package.grouping.groups[g]));
    json.member("steps", steps).end_object();
  }
  json.end_array();
  dumps.write(json);
  std::printf("%s\n", json.end_object().text().c_str());
}

void print_json(const GraphPackage& package, const PassDumps& dumps) {
  const Program& program = *package.program;
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("sequences").begin_array();
  for (std::uint32_t scope = 0; scope < package.grouping.units.size(); ++scope) {
    json.begin_object().member("name", title(program, scope)).key("units").begin_array();
    for (const Unit& unit : package.grouping.units[scope]) {
      json.begin_object().member("level", unit.level);
      if (unit.is_group)
        json.member("nodes", node_names(program, package.grouping.groups[unit.index]))
            .member("plan", plan_text(package, unit.index));
      else
        json.member("step", step_text(program, program.schedule.sequences[scope].steps[unit.index]));
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  dumps.write(json);
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

}  // namespace

Result<NamedProgram> tessera::cli::read_description_program(const ProgramFile& file) {
  const auto program = TESSERA_TRY(checked_program(file));
  auto launch = description::whole_launch(*program);
  if (!launch) return std::move(launch).error().at({shown(file.path), 0, 0});
  NamedProgram out{.functions = {launch->function}};
  out.names.states = launch->states;
  out.names.blocks = blocks_of(*program->description);
  for (const std::uint32_t buffer : launch->results)
    out.names.outputs.push_back(program->graph.buffers[buffer].name);
  return out;
}

bool tessera::cli::is_no_program(const ProgramFile& file, const Result<NamedProgram>& program) {
  return !program && file.kind == FileKind::description && program.error().code() == ErrorCode::unsupported;
}

Result<GraphPackage> tessera::cli::compile_graph(const ProgramFile& file, runtime::Device& device) {
  return engine::compile_graph(TESSERA_TRY(checked_program(file)), device);
}

HostFunctions tessera::cli::host_functions_of(const description::Description& d) {
  HostFunctions out;
  const auto add = [](std::vector<std::string>& to, const std::string& name) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  };
  for (const description::Node& node : d.nodes) {
    if (node.kind == description::NodeKind::kernel) add(out.kernels, node.call);
    if (node.kind == description::NodeKind::captured) add(out.captures, node.call);
  }
  return out;
}

std::string tessera::cli::to_text(const HostFunctions& functions) {
  std::string out;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(description::shown(name));
    if (!names.empty()) out += cat(what, join(quoted, ", "), "\n");
  };
  add("kernels it calls by name: ", functions.kernels);
  add("captures it calls by name: ", functions.captures);
  return out;
}

void tessera::cli::write_json(JsonWriter& json, const HostFunctions& functions) {
  json.member("kernels", functions.kernels).member("captures", functions.captures);
}

Result<DescribedGroups> tessera::cli::read_description_groups(const ProgramFile& file) {
  const auto program = TESSERA_TRY(checked_program(file));
  const Grouping grouping = TESSERA_TRY(description::group_ops(*program));
  DescribedGroups out{.groups = {}, .host_functions = host_functions_of(*program->description)};
  for (const OpGroup& group : grouping.groups)
    out.groups.push_back({node_names(*program, group), group.function});
  return out;
}

Result<Answer> tessera::cli::compile_description(const ProgramFile& file, const FunctionChoice& choice,
                                                 const DescriptionOptions& options) {
  TESSERA_TRY(check_choice(file, choice));
  const GraphPackage package = TESSERA_TRY(compiled(file, options));
  if (options.json) {
    print_json(package, *options.dumps);
  } else {
    options.dumps->print();
    print_text(package);
  }
  return Answer::yes;
}

Result<void> tessera::cli::write_graph(const ProgramFile& file, const std::string& output,
                                       const DescriptionOptions& options) {
  const GraphPackage package = TESSERA_TRY(compiled(file, options));
  TESSERA_TRY(engine::save_graph(package, output));
  options.json ? print_json(package, output, *options.dumps) : options.dumps->print();
  return {};
}
