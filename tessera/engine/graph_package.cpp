#include "tessera/engine/graph_package.h"

#include <algorithm>
#include <map>

#include "tessera/base/file.h"
#include "tessera/base/machine_memory.h"
#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/code_files.h"
#include "tessera/describe/verify_grouping.h"
#include "tessera/describe/verify_schedule.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_archive.h"
#include "tessera/engine/graph_device.h"
#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/archive_file.h"
#include "tessera/plan/size_conditions.h"
#include "tessera/plan/verify.h"

using namespace tessera;
using namespace tessera::engine;
namespace archive = tessera::plan::archive;

namespace {

// ---- compiling

/// The code that nodes name, each file once.
Result<std::vector<CodeText>> read_code(const description::Description& d) {
  std::vector<CodeText> out;
  for (const description::Node& node : d.nodes) {
    if (!node.code) continue;
    std::string path = description::code_path(d, node);
    if (std::any_of(out.begin(), out.end(), [&](const CodeText& known) { return known.path == path; }))
      continue;
    const auto code = TESSERA_TRY(description::code_source(d, node)->current());
    out.push_back({std::move(path), code->text});
  }
  return out;
}

/// One that no plan can say runs node by node; so does one that has no nodes.
Result<plan::PlanRef> plan_of(const description::OpGroup& group, const pattern::Target& target,
                              const compiler::PlanOptions& options) {
  if (group.nodes.empty()) return plan::PlanRef();
  auto planned = compiler::plan_function(group.function, target, options);
  if (planned) return std::move(planned->plan);
  if (planned.error().code() == ErrorCode::unsupported) return plan::PlanRef();
  return std::move(planned).error();
}

// ---- saving

/// Everything that a node calls must be known by its name elsewhere.
Result<void> check_names(const description::Description& d) {
  for (const description::Node& node : d.nodes) {
    const auto refuse = [&](std::string_view why) {
      const std::string block = node.block.empty() ? "" : cat(" of block ", description::shown(node.block));
      return Error(ErrorCode::unsupported,
                   cat("the plan cannot be saved: node ", description::shown(node.id), block, " calls ", why),
                   d.span_of(node.at));
    };
    if (node.is_anonymous)
      return refuse(
          "a function that was given with it and has no name: give the kernels a name and let the "
          "node call that");
    if (node.kind != description::NodeKind::op) continue;
    const op::Card* card = op::find_card(node.call);
    if (card == nullptr || !op::is_in_catalogue(*card))
      return refuse(
          cat("op ", description::shown(node.call), ", a function of this process and not of the catalogue"));
  }
  return {};
}

// ---- loading

Error wrong(std::string message) {
  return Error(ErrorCode::parse, "the plan is wrong: " + std::move(message));
}

/// The slots that steps of a plan look at.
std::vector<bool> used_slots(const plan::Plan& plan) {
  std::vector<bool> out(plan.parameters.size());
  for (const plan::Value& value : plan.values)
    if (value.kind == plan::ValueKind::parameter) out[value.index] = true;
  for (const plan::Step& step : plan.steps)
    if (step.function != nullptr)
      for (const ir::Node* node : ir::post_order(*step.function))
        if (const auto* parameter = ir::as<ir::Param>(*node)) out[parameter->slot] = true;
  return out;
}

/// It takes and gives what its group does. REQUIRES that it was verified.
Result<void> check_signature(const plan::Plan& plan, const description::Graph& graph,
                             const description::OpGroup& group) {
  const ir::Function& function = *group.function;
  if (!plan.dims.empty() || plan.inputs.size() != function.params.size() ||
      plan.outputs.size() != function.results.size() || plan.parameters.size() > group.numbers.size())
    return wrong("it has other inputs, outputs or numbers than its ops");
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    if (plan.values[plan.inputs[i]].type != op::value_type(*function.params[i]->type))
      return wrong(cat("input ", i, " has another type than that of its ops"));
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    if (plan.values[plan.outputs[i]].type != op::operand_type(*function.results[i]))
      return wrong(cat("output ", i, " has another type than that of its ops"));
  const std::vector<bool> used = used_slots(plan);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const description::GraphNode& node = graph.nodes[group.numbers[i].node];
    if (used[i] && plan.parameters[i] != scalar_dtype(graph, node, node.pins[group.numbers[i].pin]))
      return wrong(cat("number ", i, " has another type than that of its ops"));
  }
  return plan::check_sizes(plan, {});
}

Result<plan::PlanRef> verified_plan(std::shared_ptr<plan::Plan> plan, const description::Program& program,
                                    const description::OpGroup& group) {
  TESSERA_TRY(plan::verify(*plan));
  TESSERA_TRY(check_signature(*plan, program.graph, group));
  return plan::PlanRef(std::move(plan));
}

Result<GraphPackage> read_package(const Bytes& bytes) {
  auto [saved, plans] = TESSERA_TRY(from_archive(bytes));
  if (plans.size() != saved.groups.size()) return wrong("not every group has a plan, or none");
  GraphPackage out{.device = std::move(saved.device), .code = std::move(saved.code)};
  out.program = TESSERA_TRY(description::verified_program(
      std::make_shared<const description::Description>(std::move(saved.description)),
      std::move(saved.schedule)));
  out.grouping = TESSERA_TRY(
      description::verified_grouping(*out.program, std::move(saved.groups), std::move(saved.units)));
  for (std::size_t g = 0; g < plans.size(); ++g) {
    out.plans.emplace_back();
    if (plans[g] == nullptr) continue;
    const description::OpGroup& group = out.grouping.groups[g];
    if (group.nodes.empty()) return wrong("a group without nodes has a plan");
    auto plan = verified_plan(std::move(plans[g]), *out.program, group);
    if (!plan)
      return std::move(plan).error().note(cat(
          "of the ops from node ", description::shown(out.program->description->nodes[group.nodes[0]].id)));
    out.plans.back() = *std::move(plan);
  }
  return out;
}

// ---- running

/// Kernels of the code in the package, where the table has none.
void add_code(const GraphPackage& package, description::KernelTable& to) {
  const description::Description& d = *package.program->description;
  for (const description::Node& node : d.nodes) {
    if (!node.code || to.has_kernel(node.call)) continue;
    const std::string path = description::code_path(d, node);
    const auto found = std::find_if(package.code.begin(), package.code.end(),
                                    [&](const CodeText& code) { return code.path == path; });
    if (found == package.code.end()) continue;
    op::DeviceCall call;
    call.name = node.call;
    call.entry = node.code->entry.empty() ? node.call : node.code->entry;
    call.code = op::KernelSource::from_text(found->text, op::form_of_file(path), path);
    to.add_device_kernel(node.call, {std::move(call), node.code->threads});
  }
}

/// A group whose program there is no memory for runs node by node.
Result<std::vector<std::shared_ptr<description::OpProgram>>> load_programs(
    const GraphPackage& package, const std::shared_ptr<runtime::Device>& device, std::uint64_t memory) {
  const auto pool = runtime::MemoryPool::create();
  std::vector<std::shared_ptr<description::OpProgram>> out;
  for (const plan::PlanRef& plan : package.plans) {
    out.emplace_back();
    if (plan == nullptr) continue;
    auto program = load_op_program(device, plan, pool, memory);
    if (!program && program.error().code() == ErrorCode::memory) continue;
    out.back() = TESSERA_TRY(std::move(program));
  }
  return out;
}

}  // namespace

Result<GraphPackage> tessera::engine::compile_graph(description::Description description,
                                                    runtime::Device& device) {
  auto validation = description::validate(
      std::make_shared<const description::Description>(std::move(description)), nullptr);
  if (validation.program == nullptr) return validation.report.to_error();
  return compile_graph(std::move(validation.program), device);
}

Result<GraphPackage> tessera::engine::compile_graph(std::shared_ptr<const description::Program> program,
                                                    runtime::Device& device,
                                                    const compiler::PlanOptions& options,
                                                    const GroupVisitor& visit) {
  GraphPackage out{.device = std::string(device.name()), .program = std::move(program)};
  out.code = TESSERA_TRY(read_code(*out.program->description));
  if (device.memory_space() != nullptr) {
    out.grouping = description::one_by_one(*out.program);
    return out;
  }
  out.grouping = TESSERA_TRY(description::group_ops(*out.program));
  for (const description::OpGroup& group : out.grouping.groups) {
    if (visit) visit(*out.program, group);
    out.plans.push_back(TESSERA_TRY(plan_of(group, device.target(), options)));
  }
  return out;
}

Result<std::string> tessera::engine::to_bytes(const GraphPackage& package) {
  TESSERA_TRY(check_names(*package.program->description));
  SavedGraph saved{.device = package.device,
                   .description = *package.program->description,
                   .schedule = package.program->schedule,
                   .groups = {},
                   .units = package.grouping.units,
                   .has_plan = {},
                   .code = package.code};
  for (std::size_t g = 0; g < package.grouping.groups.size(); ++g) {
    saved.groups.push_back({package.grouping.groups[g].scope, package.grouping.groups[g].steps});
    saved.has_plan.push_back(package.plans[g] != nullptr ? 1 : 0);
  }
  return to_archive(saved, package.plans);
}

Result<GraphPackage> tessera::engine::graph_from_bytes(const Bytes& bytes, const std::string& name) {
  auto out = read_package(bytes);
  if (!out) return std::move(out).error().at({printable(name), 0, 0});
  return out;
}

Result<void> tessera::engine::save_graph(const GraphPackage& package, const std::string& path) {
  return archive::write_archive(path, TESSERA_TRY(to_bytes(package)));
}

Result<GraphPackage> tessera::engine::load_graph(const std::string& path) {
  return graph_from_bytes(TESSERA_TRY(map_file(path)), path);
}

bool tessera::engine::is_graph(const std::string& path) {
  return archive::begins_with(path, archive::graph_magic);
}
bool tessera::engine::begins_graph(std::string_view bytes) { return bytes.starts_with(archive::graph_magic); }

Result<std::unique_ptr<description::HostGraph>> tessera::engine::make_graph(
    GraphPackage package, description::KernelTable kernels, description::HostOptions options,
    std::shared_ptr<runtime::Device> device) {
  add_code(package, kernels);
  if (options.device == nullptr) {
    if (device == nullptr) device = TESSERA_TRY(find_device(package.device));
    if (device->memory_space() != nullptr)
      options.device = TESSERA_TRY(make_graph_device(device));
    else if (options.compiler == nullptr)
      options.compiler = make_op_compiler(device);
  }
  description::PreparedGraph prepared{
      .program = package.program, .grouping = package.grouping, .programs = {}};
  if (options.device == nullptr)
    prepared.programs =
        TESSERA_TRY(load_programs(package, device, options.memory != 0 ? options.memory : machine_memory()));
  return description::HostGraph::create(std::move(prepared), std::move(kernels), std::move(options));
}
