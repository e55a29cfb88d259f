#include "tessera/describe/op_group.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/function_writer.h"

using namespace tessera;
using namespace tessera::description;

namespace {

struct BufferUses {
  BufferScopes scopes;
  std::vector<std::uint32_t> counts;  ///< how many pins and regions use each
  std::vector<bool> is_written;
};

BufferUses uses_of(const Graph& graph) {
  const std::size_t n = graph.buffers.size();
  BufferUses out{buffer_scopes(graph), std::vector<std::uint32_t>(n), std::vector<bool>(n)};
  const auto count = [&](std::uint32_t buffer) {
    if (buffer != no_index) ++out.counts[buffer];
  };
  const auto note_write = [&](std::uint32_t buffer) {
    if (buffer != no_index) out.is_written[buffer] = true;
  };
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins) {
      count(pin.buffer);
      if (writes(pin.declared.access)) note_write(pin.buffer);
    }
  for (const std::uint32_t buffer : graph.condition) count(buffer);
  for (const std::uint32_t buffer : graph.index_buffer) {
    count(buffer);
    note_write(buffer);
  }
  return out;
}

/// Calls `visit` with each node that a step has, also in regions, and with each buffer that its regions use.
template <class OnNode, class OnBuffer>
void visit_step(const Program& program, const Step& step, const OnNode& on_node, const OnBuffer& on_buffer) {
  if (step.kind == StepKind::node) return on_node(step.index);
  if (step.kind != StepKind::region) return;
  const Graph& graph = program.graph;
  on_buffer(graph.condition[step.index]);
  on_buffer(graph.index_buffer[step.index]);
  for (std::uint32_t s = graph.first_branch[step.index]; s < graph.first_branch[step.index + 1]; ++s)
    for (const Step& inner : program.schedule.sequences[s].steps)
      visit_step(program, inner, on_node, on_buffer);
}

/// Writes the function of a group. What nobody has written yet is a parameter.
class GroupWriter : public FunctionWriter {
 public:
  GroupWriter(const Program& program, const BufferUses& uses, OpGroup& group)
      : FunctionWriter(program, uses.scopes), uses_(uses.counts), group_(group) {}

  Result<void> run() {
    const auto& steps = program().schedule.sequences[group_.scope].steps;
    for (const std::uint32_t step : group_.steps) {
      count_uses(steps[step]);
      TESSERA_TRY(add(steps[step]));
    }
    std::vector<op::Value> results;
    for (const std::uint32_t buffer : outer().written)
      if (is_seen(buffer)) {
        group_.results.push_back(buffer);
        results.push_back(outer().contents.at(buffer));
      }
    group_.function = TESSERA_TRY(outer().builder.function("ops", results));
    return {};
  }

 protected:
  /// The value of a number.
  [[nodiscard]] const ScalarValue& given(const Taken& number) const {
    return *program().graph.nodes[number.index].pins[number.pin].declared.scalar;
  }

  op::Value take(Statements& outer, const Taken& what) override {
    if (what.is_number) return number(outer, what);
    group_.inputs.push_back(what.index);
    return outer.builder.parameter(program().graph.buffers[what.index].name, type_of(what));
  }

 private:
  void count_uses(const Step& step) {
    const auto count = [&](std::uint32_t buffer) {
      if (buffer != no_index) ++uses_inside_[buffer];
    };
    const auto count_pins = [&](std::uint32_t node) {
      group_.nodes.push_back(node);
      for (const Pin& pin : program().graph.nodes[node].pins) count(pin.buffer);
    };
    visit_step(program(), step, count_pins, count);
  }

  op::Value number(Statements& outer, const Taken& what) {
    const auto slot = static_cast<std::uint32_t>(group_.numbers.size());
    group_.numbers.push_back({what.index, what.pin});
    const double value = std::visit([](auto v) { return static_cast<double>(v); }, given(what));
    const op::ValueType type = type_of(what);
    return outer.builder.import(ir::param(slot, type.dtype, value), type);
  }

  /// Whether somebody else, or the group itself when it runs again, reads what is in the buffer then.
  [[nodiscard]] bool is_seen(std::uint32_t buffer) const {
    const auto inside = uses_inside_.find(buffer);
    const std::uint32_t known = inside == uses_inside_.end() ? 0 : inside->second;
    return program().graph.buffers[buffer].lifetime != Lifetime::region || uses_[buffer] > known ||
           std::find(group_.inputs.begin(), group_.inputs.end(), buffer) != group_.inputs.end();
  }

  const std::vector<std::uint32_t>& uses_;  // by buffer
  OpGroup& group_;
  std::unordered_map<std::uint32_t, std::uint32_t> uses_inside_;
};

/// Writes the whole launch. What nobody has written yet is a parameter, or zero: in temporary buffers, and in
/// those of the graph that nobody writes at all. Integers that no double has are constants: what a slot held
/// is kept as a double.
class LaunchWriter final : public GroupWriter {
 public:
  LaunchWriter(const Program& program, const BufferUses& uses, OpGroup& group)
      : GroupWriter(program, uses, group), is_written_(uses.is_written) {}

 private:
  op::Value take(Statements& outer, const Taken& what) override {
    if (what.is_number && !ir::is_float(type_of(what).dtype) && !is_exact_double(given(what)))
      return outer.builder.import(ir::int_const(std::get<std::int64_t>(given(what)), type_of(what).dtype),
                                  type_of(what));
    const bool is_zero = !what.is_number && is_zero_at_first(what.index);
    return is_zero ? op::full(outer.builder, 0, type_of(what)) : GroupWriter::take(outer, what);
  }

  [[nodiscard]] bool is_zero_at_first(std::uint32_t buffer) const {
    const Lifetime lifetime = program().graph.buffers[buffer].lifetime;
    return lifetime == Lifetime::region || (lifetime == Lifetime::graph && !is_written_[buffer]);
  }

  const std::vector<bool>& is_written_;
};

/// The same function, with what is kept from launch to launch as its last parameters.
Launch with_states_last(const Graph& graph, OpGroup group) {
  Launch out{.inputs = {}, .results = std::move(group.results)};
  ir::FunctionParts parts{.name = "launch", .body = group.function->body, .results = group.function->results};
  for (const bool is_state : {false, true})
    for (std::size_t i = 0; i < group.inputs.size(); ++i) {
      if ((graph.buffers[group.inputs[i]].lifetime == Lifetime::graph) != is_state) continue;
      parts.params.push_back(group.function->params[i]);
      if (!is_state) out.inputs.push_back(group.inputs[i]);
      const auto result = std::find(out.results.begin(), out.results.end(), group.inputs[i]);
      if (is_state) out.states.push_back(static_cast<std::uint32_t>(result - out.results.begin()));
    }
  out.function = ir::function(std::move(parts));
  return out;
}

/// Finds the groups of one sequence. A step's level is that of the highest it waits for, and one more unless
/// both belong to one group: so every wait between units goes up.
class SequenceGrouper {
 public:
  SequenceGrouper(const Program& program, std::uint32_t scope)
      : program_(program), scope_(scope), steps_(program.schedule.sequences[scope].steps) {
    for (const Step& step : steps_) is_statement_.push_back(!why_no_statement(program, step));
    find_blocks();
  }

  std::vector<Unit> run(std::vector<OpGroup>& groups) {
    std::vector<Unit> out;
    std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> found;  // block and level: group
    for (std::uint32_t s = 0; s < steps_.size(); ++s) {
      const std::uint32_t level = level_of(s);
      levels_.push_back(level);
      if (!is_statement_[s]) {
        out.push_back({.index = s, .level = level});
        continue;
      }
      const auto [group, is_new] = found.try_emplace({blocks_[s], level}, groups.size());
      if (is_new) {
        out.push_back({.is_group = true, .index = group->second, .level = level});
        groups.emplace_back().scope = scope_;
      }
      groups[group->second].steps.push_back(s);
    }
    std::stable_sort(out.begin(), out.end(), [](const Unit& a, const Unit& b) { return a.level < b.level; });
    return out;
  }

 private:
  /// A buffer is zeroed for a region, and belongs to its block.
  void find_blocks() {
    const Description& description = *program_.description;
    blocks_.resize(steps_.size());
    for (std::size_t s = steps_.size(); s-- > 0;) {
      if (steps_[s].kind == StepKind::node) blocks_[s] = description.nodes[steps_[s].index].block;
      if (steps_[s].kind != StepKind::region) continue;
      blocks_[s] = description.regions[steps_[s].index].block;
      for (const Wait& wait : steps_[s].waits)
        if (steps_[wait.step].kind == StepKind::zero) {
          blocks_[wait.step] = blocks_[s];
          is_statement_[wait.step] = is_statement_[s];
        }
    }
  }

  [[nodiscard]] std::uint32_t level_of(std::uint32_t s) const {
    std::uint32_t out = 0;
    for (const Wait& wait : steps_[s].waits) {
      const bool is_inside = is_statement_[s] && is_statement_[wait.step] && blocks_[s] == blocks_[wait.step];
      out = std::max(out, levels_[wait.step] + (is_inside ? 0 : 1));
    }
    return out;
  }

  const Program& program_;
  std::uint32_t scope_;
  const std::vector<Step>& steps_;
  std::vector<bool> is_statement_;
  std::vector<std::string_view> blocks_;
  std::vector<std::uint32_t> levels_;
};

/// Which scopes are inside of regions that are parts of groups.
class Absorbed {
 public:
  explicit Absorbed(const Program& program) : program_(program), is_(program.graph.scopes.size()) {}

  void add(const OpGroup& group) {
    for (const std::uint32_t s : group.steps) add(program_.schedule.sequences[group.scope].steps[s]);
  }
  [[nodiscard]] bool has(std::uint32_t scope) const { return is_[scope]; }

 private:
  void add(const Step& step) {
    if (step.kind != StepKind::region) return;
    const auto& first = program_.graph.first_branch;
    for (std::uint32_t scope = first[step.index]; scope < first[step.index + 1]; ++scope) {
      is_[scope] = true;
      for (const Step& inner : program_.schedule.sequences[scope].steps) add(inner);
    }
  }

  const Program& program_;
  std::vector<bool> is_;
};

std::vector<Unit> steps_alone(const Sequence& sequence) {
  std::vector<Unit> out;
  for (std::uint32_t s = 0; s < sequence.steps.size(); ++s)
    out.push_back({.index = s, .level = sequence.steps[s].level});
  std::stable_sort(out.begin(), out.end(), [](const Unit& a, const Unit& b) { return a.level < b.level; });
  return out;
}

/// Scopes with those that contain them before them.
std::vector<std::uint32_t> outermost_first(const Graph& graph) {
  std::vector<std::uint32_t> out(graph.scopes.size());
  std::iota(out.begin(), out.end(), 0U);
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return graph.scopes[a].depth < graph.scopes[b].depth;
  });
  return out;
}

}  // namespace

Result<Launch> tessera::description::whole_launch(const Program& program) {
  const auto& steps = program.schedule.sequences[0].steps;
  OpGroup all;
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    if (const auto why = why_no_statement(program, steps[s]))
      return Error(ErrorCode::unsupported, cat("the description is no function: it has ", *why));
    all.steps.push_back(s);
  }
  const auto uses = uses_of(program.graph);
  TESSERA_TRY(LaunchWriter(program, uses, all).run());
  return with_states_last(program.graph, std::move(all));
}

Result<Grouping> tessera::description::group_ops(const Program& program) {
  Grouping out;
  out.units.resize(program.schedule.sequences.size());
  Absorbed absorbed(program);
  for (const std::uint32_t scope : outermost_first(program.graph)) {
    if (absorbed.has(scope)) {
      out.units[scope] = steps_alone(program.schedule.sequences[scope]);
      continue;
    }
    const std::size_t before = out.groups.size();
    out.units[scope] = SequenceGrouper(program, scope).run(out.groups);
    for (std::size_t g = before; g < out.groups.size(); ++g) absorbed.add(out.groups[g]);
  }
  const auto uses = uses_of(program.graph);
  for (OpGroup& group : out.groups) TESSERA_TRY(GroupWriter(program, uses, group).run());
  return out;
}

Result<std::vector<OpGroup>> tessera::description::rewrite_groups(const Program& program,
                                                                  const Grouping& grouping,
                                                                  std::span<const std::uint32_t> groups) {
  const auto uses = uses_of(program.graph);
  std::vector<OpGroup> out;
  for (const std::uint32_t group : groups) {
    const OpGroup& before = grouping.groups[group];
    out.push_back({.scope = before.scope, .steps = before.steps});
    TESSERA_TRY(GroupWriter(program, uses, out.back()).run());
  }
  return out;
}

Grouping tessera::description::one_by_one(const Program& program) {
  Grouping out;
  for (const Sequence& sequence : program.schedule.sequences) out.units.push_back(steps_alone(sequence));
  return out;
}
