#include "tessera/describe/op_group.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// How many pins and regions use each buffer.
std::vector<std::uint32_t> use_counts(const Graph& graph) {
  std::vector<std::uint32_t> out(graph.buffers.size());
  const auto count = [&](std::uint32_t buffer) {
    if (buffer != no_index) ++out[buffer];
  };
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins) count(pin.buffer);
  for (const std::uint32_t buffer : graph.condition) count(buffer);
  for (const std::uint32_t buffer : graph.index_buffer) count(buffer);
  return out;
}

/// Writes the function of a group.
class GroupWriter {
 public:
  GroupWriter(const Program& program, const std::vector<std::uint32_t>& uses, OpGroup& group)
      : graph_(program.graph), uses_(uses), group_(group) {}

  Result<void> run() {
    for (const std::uint32_t node : group_.nodes) add(node);
    std::vector<op::Value> results;
    for (const std::uint32_t buffer : written_)
      if (is_seen(buffer)) {
        group_.results.push_back(buffer);
        results.push_back(values_.at(buffer));
      }
    group_.function = TESSERA_TRY(builder_.function("ops", results));
    return {};
  }

 private:
  void add(std::uint32_t index) {
    const GraphNode& node = graph_.nodes[index];
    std::vector<op::Value> inputs;
    for (std::uint32_t i = 0; i < node.pins.size(); ++i) {
      const Pin& pin = node.pins[i];
      if (pin.buffer != no_index) ++uses_inside_[pin.buffer];
      if (writes(pin.declared.access)) continue;
      inputs.push_back(pin.is_scalar() ? number(index, i) : read(pin.buffer));
    }
    const op::Values results = builder_.call_all(node.card->name, inputs, node.attributes);
    std::size_t next = 0;
    for (const Pin& pin : node.pins)
      if (writes(pin.declared.access) && next < results.size()) write(pin.buffer, results[next++]);
  }

  op::Value number(std::uint32_t node, std::uint32_t pin) {
    const auto slot = static_cast<std::uint32_t>(group_.numbers.size());
    group_.numbers.push_back({node, pin});
    const Dtype dtype = scalar_dtype(graph_, graph_.nodes[node], graph_.nodes[node].pins[pin]);
    const double value = std::visit([](auto v) { return static_cast<double>(v); },
                                    *graph_.nodes[node].pins[pin].declared.scalar);
    return builder_.import(ir::param(slot, dtype, value), {dtype, {}});
  }

  op::Value read(std::uint32_t buffer) {
    const auto known = values_.find(buffer);
    if (known != values_.end()) return known->second;
    const GraphBuffer& b = graph_.buffers[buffer];
    group_.inputs.push_back(buffer);
    return values_[buffer] = builder_.parameter(b.name, {b.dtype, ir::shape_of(b.shape)});
  }

  void write(std::uint32_t buffer, op::Value value) {
    if (std::find(written_.begin(), written_.end(), buffer) == written_.end()) written_.push_back(buffer);
    values_[buffer] = value;
  }

  /// Whether somebody else, or the group itself when it runs again, reads what is in the buffer then.
  [[nodiscard]] bool is_seen(std::uint32_t buffer) const {
    const auto inside = uses_inside_.find(buffer);
    return graph_.buffers[buffer].lifetime != Lifetime::region || uses_[buffer] > inside->second ||
           std::find(group_.inputs.begin(), group_.inputs.end(), buffer) != group_.inputs.end();
  }

  const Graph& graph_;
  const std::vector<std::uint32_t>& uses_;
  OpGroup& group_;
  op::IrBuilder builder_;
  std::unordered_map<std::uint32_t, op::Value> values_;  // what a buffer holds now
  std::unordered_map<std::uint32_t, std::uint32_t> uses_inside_;
  std::vector<std::uint32_t> written_;
};

/// Finds the groups of one sequence. A step's level is that of the highest it waits for, and one more unless
/// both belong to one group: so every wait between units goes up.
class SequenceGrouper {
 public:
  SequenceGrouper(const Program& program, const Sequence& sequence)
      : program_(program), sequence_(sequence) {}

  std::vector<Unit> run(std::vector<OpGroup>& groups) {
    std::vector<Unit> out;
    std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> found;  // block and level: group
    for (std::uint32_t s = 0; s < sequence_.steps.size(); ++s) {
      const std::uint32_t level = level_of(s);
      levels_.push_back(level);
      if (!is_op(s)) {
        out.push_back({.index = s, .level = level});
        continue;
      }
      const auto [group, is_new] = found.try_emplace({block_of(s), level}, groups.size());
      if (is_new) {
        out.push_back({.is_group = true, .index = group->second, .level = level});
        groups.emplace_back();
      }
      groups[group->second].nodes.push_back(sequence_.steps[s].index);
    }
    std::stable_sort(out.begin(), out.end(), [](const Unit& a, const Unit& b) { return a.level < b.level; });
    return out;
  }

 private:
  [[nodiscard]] std::uint32_t level_of(std::uint32_t s) const {
    std::uint32_t out = 0;
    for (const Wait& wait : sequence_.steps[s].waits) {
      const bool is_inside = is_op(s) && is_op(wait.step) && block_of(s) == block_of(wait.step);
      out = std::max(out, levels_[wait.step] + (is_inside ? 0 : 1));
    }
    return out;
  }

  [[nodiscard]] bool is_op(std::uint32_t s) const {
    const Step& step = sequence_.steps[s];
    if (step.kind != StepKind::node || program_.description->nodes[step.index].kind != NodeKind::op)
      return false;
    const GraphNode& node = program_.graph.nodes[step.index];
    return !node.card->traits.random && std::all_of(node.pins.begin(), node.pins.end(), [](const Pin& pin) {
      return pin.is_scalar() || pin.buffer != no_index;
    });
  }

  [[nodiscard]] std::string_view block_of(std::uint32_t s) const {
    return program_.description->nodes[sequence_.steps[s].index].block;
  }

  const Program& program_;
  const Sequence& sequence_;
  std::vector<std::uint32_t> levels_;
};

/// What keeps a step from being part of a function.
std::optional<std::string> why_no_op(const Program& program, const Step& step) {
  const Description& description = *program.description;
  if (step.kind == StepKind::region) return cat("region ", shown(description.regions[step.index].id));
  if (step.kind != StepKind::node)
    return cat("buffer ", shown(program.graph.buffers[step.index].name), ", which is cleared at each launch");
  const Node& node = description.nodes[step.index];
  if (node.kind != NodeKind::op)
    return cat(to_string(node.kind), " node ", shown(node.id), ", a host function");
  if (program.graph.nodes[step.index].card->traits.random)
    return cat("node ", shown(node.id), ", whose results differ from launch to launch");
  return std::nullopt;
}

}  // namespace

Result<OpGroup> tessera::description::whole_launch(const Program& program) {
  OpGroup out;
  for (const Step& step : program.schedule.sequences[0].steps) {
    if (const auto why = why_no_op(program, step))
      return Error(ErrorCode::unsupported, cat("the description is no function: it has ", *why));
    out.nodes.push_back(step.index);
  }
  const auto uses = use_counts(program.graph);
  TESSERA_TRY(GroupWriter(program, uses, out).run());
  for (const std::uint32_t buffer : out.inputs)
    if (program.graph.buffers[buffer].lifetime != Lifetime::external)
      return Error(ErrorCode::unsupported,
                   cat("the description is no function: buffer ", shown(program.graph.buffers[buffer].name),
                       " is read before it is written, and keeps its contents from launch to launch"));
  return out;
}

Result<Grouping> tessera::description::group_ops(const Program& program) {
  Grouping out;
  for (const Sequence& sequence : program.schedule.sequences)
    out.units.push_back(SequenceGrouper(program, sequence).run(out.groups));
  const auto uses = use_counts(program.graph);
  for (OpGroup& group : out.groups) TESSERA_TRY(GroupWriter(program, uses, group).run());
  return out;
}

Grouping tessera::description::one_by_one(const Program& program) {
  Grouping out;
  for (const Sequence& sequence : program.schedule.sequences) {
    auto& units = out.units.emplace_back();
    for (std::uint32_t s = 0; s < sequence.steps.size(); ++s)
      units.push_back({.index = s, .level = sequence.steps[s].level});
  }
  return out;
}
