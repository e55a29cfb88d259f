#include "tessera/describe/validate.h"

#include <map>
#include <unordered_map>

#include "tessera/base/machine_memory.h"
#include "tessera/base/memory_layout.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/code_files.h"
#include "tessera/describe/memory_plan.h"
#include "tessera/describe/program_order.h"
#include "tessera/describe/resolve.h"

using namespace tessera;
using namespace tessera::description;

namespace {

void warn(Report& report, Diagnostic diagnostic) {
  diagnostic.severity = Severity::warning;
  report.add(std::move(diagnostic));
}

/// Nothing if it is not known.
std::optional<Dtype> dtype_of(const Graph& graph, std::uint32_t node, const Pin& pin) {
  if (pin.is_scalar()) return scalar_dtype(graph, graph.nodes[node], pin);
  const bool is_known = pin.buffer != no_index && graph.buffers[pin.buffer].has_type;
  return is_known ? std::optional(graph.buffers[pin.buffer].dtype) : std::nullopt;
}

/// How a node gives, or a kernel takes, a parameter.
std::string parameter_text(const Parameter& parameter) {
  return parameter.scalar ? std::string("a number") : std::string(to_string(parameter.access));
}

/// What a node gives to something that said what it takes.
void check_declared(const Graph& graph, std::uint32_t index, const std::vector<Parameter>& taken,
                    Report& report) {
  const Node& node = graph.description->nodes[index];
  const std::vector<Pin>& given = graph.nodes[index].pins;
  const std::string called = cat(to_string(node.kind), " ", shown(node.call));
  if (given.size() != taken.size())
    return report.add(graph.about(Item{false, index}, cat(called, " takes ", taken.size(),
                                                          " parameters, the node has ", given.size())));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Parameter& has = given[i].declared;
    const auto say = [&](auto&&... what) { report.add(graph.about(index, given[i], cat(called, what...))); };
    const bool is_same_access = has.scalar || has.access == taken[i].access;
    if (has.name != taken[i].name)
      say(" has parameter ", shown(taken[i].name), " in its place");
    else if (has.scalar.has_value() != taken[i].scalar.has_value() || !is_same_access)
      say(" takes it as ", parameter_text(taken[i]), ", the node has it as ", parameter_text(has));
    const auto dtype = dtype_of(graph, index, given[i]);
    if (taken[i].dtype && dtype && *dtype != *taken[i].dtype)
      say(" takes it as ", to_string(*taken[i].dtype), ", the node has it as ", to_string(*dtype));
  }
}

/// Where no kernels are given, that there is the code of those that say where it is.
void check_code_files(const Graph& graph, Report& report) {
  const Description& d = *graph.description;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = d.nodes[i];
    if (!node.code) continue;
    const auto is_there = code_source(d, node)->check();
    if (is_there) continue;
    const Error& error = is_there.error();
    const bool is_missing = error.code() == ErrorCode::not_found;
    Diagnostic diagnostic =
        graph.about(Item{false, i},
                    cat("kernel ", shown(node.call), ": ",
                        is_missing ? cat("there is no file ", shown(code_path(d, node))) : error.message()));
    diagnostic.code = error.code();
    report.add(std::move(diagnostic));
  }
}

/// What each buffer is used for.
struct BufferUse {
  bool is_read = false;
  bool is_written = false;
};

std::vector<BufferUse> buffer_uses(const Graph& graph) {
  std::vector<BufferUse> out(graph.buffers.size());
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins)
      if (pin.buffer != no_index) {
        out[pin.buffer].is_read |= description::reads(pin.declared.access);
        out[pin.buffer].is_written |= writes(pin.declared.access);
      }
  for (std::uint32_t region = 0; region < graph.condition.size(); ++region) {
    if (graph.condition[region] != no_index) out[graph.condition[region]].is_read = true;
    if (graph.index_buffer[region] != no_index) out[graph.index_buffer[region]].is_written = true;
  }
  return out;
}

void warn_of_buffers(const Graph& graph, Report& report) {
  const Description& d = *graph.description;
  const auto uses = buffer_uses(graph);
  for (std::uint32_t i = 0; i < d.buffers.size(); ++i) {
    const Buffer& buffer = d.buffers[i];
    if (buffer.incomplete) continue;
    const auto say = [&](std::string_view what) {
      warn(report, {.message = cat("buffer ", shown(buffer.id), " ", what), .at = d.span_of(buffer.at)});
    };
    if (!uses[i].is_read && !uses[i].is_written) say("is not used");
    if (buffer.lifetime == Lifetime::graph && uses[i].is_read && !uses[i].is_written)
      say("is read and never written: it is zero");
    if (buffer.lifetime == Lifetime::region && uses[i].is_written && !uses[i].is_read)
      say("is written and never read");
  }
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    if (d.nodes[node].incomplete) continue;
    for (const Pin& pin : graph.nodes[node].pins)
      if (pin.buffer != no_index && graph.buffers[pin.buffer].producer == node && !uses[pin.buffer].is_read)
        warn(report, graph.about(node, pin, "nobody reads what it writes"));
  }
}

void warn_of_empty_regions(const Graph& graph, Report& report) {
  std::vector<bool> has_nodes(graph.region_scope.size());
  for (const GraphNode& node : graph.nodes)
    for (std::uint32_t at = node.scope; at != 0; at = graph.scopes[at].parent)
      has_nodes[graph.scopes[at].region] = true;
  for (std::uint32_t region = 0; region < has_nodes.size(); ++region)
    if (!has_nodes[region]) warn(report, graph.about(Item{true, region}, "no node stands in the region"));
}

/// A loop whose condition nothing in it writes, at any depth.
void warn_of_endless_loops(const Graph& graph, Report& report) {
  std::vector<bool> can_end(graph.region_scope.size());
  const auto note_write = [&](std::uint32_t buffer, std::uint32_t scope) {
    for (std::uint32_t at = scope; at != 0; at = graph.scopes[at].parent)
      if (graph.condition[graph.scopes[at].region] == buffer) can_end[graph.scopes[at].region] = true;
  };
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins)
      if (pin.buffer != no_index && writes(pin.declared.access)) note_write(pin.buffer, node.scope);
  for (std::uint32_t i = 0; i < graph.region_scope.size(); ++i)
    if (graph.index_buffer[i] != no_index) note_write(graph.index_buffer[i], graph.region_scope[i]);
  for (std::uint32_t i = 0; i < can_end.size(); ++i) {
    const Region& region = graph.description->regions[i];
    if (region.kind == RegionKind::while_ && graph.condition[i] != no_index && !can_end[i])
      warn(report, graph.about(Item{true, i},
                               cat("nothing in the loop writes its condition, buffer ",
                                   shown(region.condition), ": it runs not at all, or beyond its limit")));
  }
}

void warn_of_empty_blocks(const Description& d, Report& report) {
  if (d.blocks.empty()) return;
  std::unordered_map<std::string_view, bool> is_used;
  for (const Block& block : d.blocks) is_used.emplace(block.id, false);
  std::string_view last;  // nodes of one block mostly stand together
  const auto use = [&](std::string_view block) {
    if (block == last) return;
    last = block;
    if (const auto found = is_used.find(block); found != is_used.end()) found->second = true;
  };
  for (const Block& block : d.blocks) use(block.parent);
  for (const Node& node : d.nodes) use(node.block);
  for (const Region& region : d.regions) use(region.block);
  for (const Block& block : d.blocks)
    if (!is_used.at(block.id))
      warn(report, {.block = block.id, .message = "nothing stands in the block", .at = d.span_of(block.at)});
}

/// Whether all that a step waits for stands before it: a cycle has steps that do not.
bool is_ordered(const std::vector<Sequence>& sequences) {
  for (const Sequence& sequence : sequences)
    for (std::uint32_t s = 0; s < sequence.steps.size(); ++s)
      for (const Wait& wait : sequence.steps[s].waits)
        if (wait.step >= s) return false;
  return true;
}

}  // namespace

/// A kernel that does not load is reported at every node that calls it, and loaded once.
void tessera::description::check_kernels(const Graph& graph, const KernelTable& kernels, Report& report) {
  std::map<std::string_view, std::optional<Error>> seen;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.description->nodes[i];
    if (node.kind == NodeKind::op || node.call.empty()) continue;
    if (const auto* taken = kernels.declared(node.kind, node.call)) check_declared(graph, i, *taken, report);
    if (node.kind == NodeKind::captured) {
      if (!kernels.has_capture(node.call)) {
        Diagnostic diagnostic = graph.about(
            Item{false, i},
            cat("there is no capture ", shown(node.call), ", registered are ", kernels.capture_names()));
        diagnostic.code = ErrorCode::not_found;
        report.add(std::move(diagnostic));
      }
      continue;
    }
    const auto [entry, is_new] = seen.try_emplace(node.call);
    if (is_new)
      if (auto usable = kernels.check(node.call); !usable) entry->second = std::move(usable).error();
    if (!entry->second) continue;
    const Error& error = *entry->second;
    Diagnostic diagnostic = graph.about(
        Item{false, i}, error.code() == ErrorCode::not_found
                            ? error.message()
                            : cat("kernel ", shown(node.call), " does not load: ", error.to_text()));
    diagnostic.code = error.code();
    report.add(std::move(diagnostic));
  }
}

void tessera::description::check_memory(const Description& d, const MemoryPlan& memory, const Limits& limits,
                                        Report& report) {
  const std::uint64_t limit = limits.device_memory != 0 ? limits.device_memory : machine_memory();
  const std::uint64_t temporary = report.ok() ? memory.shared_bytes : memory.lower_bound;
  const std::uint64_t needed =
      saturating_sum(saturating_sum(memory.external_bytes, memory.own_bytes), temporary);
  if (needed <= limit) return;
  report.add({.code = ErrorCode::memory,
              .message = cat("the description needs ", report.ok() ? "" : "at least ", needed,
                             " bytes (external ", memory.external_bytes, ", graph ", memory.own_bytes,
                             ", temporary ", temporary, "), the device has ", limit),
              .at = {d.files.empty() ? std::string() : d.files[0], 0, 0}});
}

void tessera::description::add_warnings(const Program& program, Report& report) {
  warn_of_buffers(program.graph, report);
  warn_of_empty_regions(program.graph, report);
  warn_of_endless_loops(program.graph, report);
  warn_of_empty_blocks(*program.description, report);
}

Validation tessera::description::validate(std::shared_ptr<const Description> description,
                                          const KernelTable* kernels, const Limits& limits) {
  Validation out{.report = Report(limits.diagnostics)};
  auto program = std::make_shared<Program>();
  program->description = std::move(description);
  program->graph = resolve(*program->description, out.report);
  program->schedule.sequences = order_steps(program->graph, out.report);
  check_types(program->graph, program->schedule.sequences, out.report);
  if (kernels != nullptr)
    check_kernels(program->graph, *kernels, out.report);
  else
    check_code_files(program->graph, out.report);
  add_warnings(*program, out.report);
  if (out.report.ok() || is_ordered(program->schedule.sequences)) {
    program->schedule.memory = plan_memory(program->graph, program->schedule.sequences);
    check_memory(*program->description, program->schedule.memory, limits, out.report);
  }
  if (out.report.ok()) out.program = std::move(program);
  return out;
}
