#include "tessera/engine/device_schedule.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/describe/node_call.h"

using namespace tessera;
using namespace tessera::engine;
using description::HostExecutable;
using description::no_index;
using description::RegionKind;
using description::ScheduleChanges;
using description::ScheduleUpdate;
using description::StepKind;
using runtime::GraphRegion;
using runtime::GraphStep;

namespace {

/// What a step of the device is of the description.
struct StepOrigin {
  StepKind kind = StepKind::node;
  std::uint32_t index = 0;  ///< the node, the region or the buffer
};

/// What one step does, wherever it stands.
class StepMaker {
 public:
  explicit StepMaker(const HostExecutable& executable)
      : exe_(executable), graph_(executable.program->graph), d_(*executable.program->description) {}

  [[nodiscard]] GraphStep make(const StepOrigin& of, bool is_outermost) const {
    GraphStep out;
    switch (of.kind) {
      case StepKind::node:
        out.call = description::node_call(*exe_.program, of.index, exe_.nodes[of.index]);
        break;
      case StepKind::region:
        out.kind = GraphStep::Kind::region;
        out.region = region(of.index);
        break;
      case StepKind::reset_counter:
        out.kind = is_outermost ? GraphStep::Kind::clear : GraphStep::Kind::reset;
        out.at = exe_.memory.device_counter(of.index);
        out.bytes = description::device_counter_bytes;
        break;
      case StepKind::zero:
        out.kind = GraphStep::Kind::clear;
        out.at = exe_.memory.data(of.index);
        out.bytes = graph_.buffers[of.index].bytes;
        break;
    }
    return out;
  }

 private:
  [[nodiscard]] op::Array array(std::uint32_t buffer) const {
    if (buffer == no_index) return {};
    return {graph_.buffers[buffer].dtype, op::contiguous({}), exe_.memory.data(buffer)};
  }

  [[nodiscard]] GraphRegion region(std::uint32_t index) const {
    const description::Region& region = d_.regions[index];
    GraphRegion out{.decides = array(graph_.condition[index]), .limit = region.limit};
    switch (region.kind) {
      case RegionKind::if_:
        out.kind = GraphRegion::Kind::branch;
        break;
      case RegionKind::switch_:
        out.kind = GraphRegion::Kind::choice;
        break;
      case RegionKind::while_:
        out.kind = GraphRegion::Kind::repeat;
        break;
      case RegionKind::for_:
        out.kind = GraphRegion::Kind::counted;
        out.count = region.count.value_or(0);
        out.index = array(graph_.index_buffer[index]);
        break;
    }
    out.bodies = static_cast<std::uint32_t>(region.branches);
    return out;
  }

  const HostExecutable& exe_;
  const description::Graph& graph_;
  const description::Description& d_;
};

/// All steps of a schedule. Regions nest at most as deep as validation allows, so that this may recurse.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(const HostExecutable& executable)
      : program_(*executable.program), maker_(executable) {
    add_scope(0, 0);
  }

  std::vector<GraphStep> steps;
  std::vector<StepOrigin> origins;  ///< by step

 private:
  void add_scope(std::uint32_t scope, std::uint32_t body) {
    const auto& listed = program_.schedule.sequences[scope].steps;
    std::vector<std::uint32_t> place(listed.size());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      std::vector<std::uint32_t> after;
      for (const description::Wait& wait : listed[i].waits) after.push_back(place[wait.step]);
      const bool is_region = listed[i].kind == StepKind::region;
      if (is_region && body == 0) clear_inner_counters(listed[i].index, after);
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      place[i] = add({listed[i].kind, listed[i].index}, body, std::move(after));
      if (is_region) add_bodies(place[i], listed[i].index);
    }
  }

  std::uint32_t add(const StepOrigin& origin, std::uint32_t body, std::vector<std::uint32_t> after) {
    GraphStep step = maker_.make(origin, body == 0);
    step.body = body;
    step.after = std::move(after);
    steps.push_back(std::move(step));
    origins.push_back(origin);
    return static_cast<std::uint32_t>(steps.size() - 1);
  }

  void add_bodies(std::uint32_t place, std::uint32_t region) {
    const std::uint32_t first = next_body_, count = steps[place].region.bodies;
    next_body_ += count;
    steps[place].first_body = first;
    for (std::uint32_t branch = 0; branch < count; ++branch)
      add_scope(program_.graph.first_branch[region] + branch, first + branch);
  }

  /// Counters that are reset by runs of the region: there may be none.
  void clear_inner_counters(std::uint32_t region, std::vector<std::uint32_t>& before) {
    const description::Graph& graph = program_.graph;
    for (std::uint32_t scope = 1; scope < graph.scopes.size(); ++scope) {
      std::uint32_t outer = scope;
      while (graph.scopes[outer].parent != 0) outer = graph.scopes[outer].parent;
      if (graph.scopes[outer].region != region) continue;
      for (const description::Step& step : program_.schedule.sequences[scope].steps)
        if (step.kind == StepKind::reset_counter)
          before.push_back(add({StepKind::reset_counter, step.index}, 0, {}));
    }
  }

  const description::Program& program_;
  StepMaker maker_;
  std::uint32_t next_body_ = 1;
};

class HeldSchedule final : public description::DeviceSchedule {
 public:
  explicit HeldSchedule(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}

  Result<void> open() {
    graph_ = TESSERA_TRY(device_->step_graph(
        [this](std::uint32_t step, Error error) { return blamed(step, std::move(error)); }));
    return {};
  }

  Result<ScheduleUpdate> follow(const HostExecutable& executable, const ScheduleChanges& changes) override {
    return changes.all ? set(executable) : replace(executable, changes);
  }

  Result<void> launch(description::Measuring measuring, std::vector<description::NodeTime>& times) override {
    static constexpr runtime::LaunchTiming timings[] = {
        runtime::LaunchTiming::none, runtime::LaunchTiming::total, runtime::LaunchTiming::steps};
    std::vector<runtime::TimedStep> measured;
    const auto failure = TESSERA_TRY(graph_->launch(timings[static_cast<std::size_t>(measuring)], measured));
    for (const runtime::TimedStep& step : measured)
      if (const std::uint32_t node = node_of(step.step); node != no_index)
        times.push_back({node, step.end - step.begin});
    if (!failure) return {};
    if (failure->error) return blamed(failure->step, *failure->error);
    return description::beyond_limit(*program_, origins_[failure->step].index, failure->turns);
  }

 private:
  static ScheduleUpdate update_of(runtime::StepGraphUpdate update) {
    return {.patched = update.patched,
            .recaptured = update.recaptured,
            .is_remade = update.is_remade,
            .refusal = std::move(update.refusal)};
  }

  Result<ScheduleUpdate> set(const HostExecutable& executable) {
    ScheduleWriter writer(executable);
    std::swap(origins_, writer.origins);
    const auto before = std::exchange(program_, executable.program);
    auto done = graph_->set(std::move(writer.steps));
    if (done) return list_places(), update_of(*std::move(done));
    std::swap(origins_, writer.origins);
    program_ = before;
    return std::move(done).error();
  }

  /// Where nodes are, so that a change of one does not look at all.
  void list_places() {
    place_of_node_.assign(program_->graph.nodes.size(), no_index);
    for (std::uint32_t i = 0; i < origins_.size(); ++i)
      if (origins_[i].kind == StepKind::node) place_of_node_[origins_[i].index] = i;
  }

  Result<ScheduleUpdate> replace(const HostExecutable& executable, const ScheduleChanges& changes) {
    const StepMaker maker(executable);
    std::vector<std::pair<std::uint32_t, GraphStep>> steps;
    const auto add = [&](std::uint32_t place) {
      steps.emplace_back(place, maker.make(origins_[place], true));
    };
    if (changes.nodes.empty() && changes.buffers.empty()) return set_numbers(executable, changes.numbers);
    for (const std::uint32_t node : changes.nodes) add(place_of_node_[node]);
    for (const ScheduleChanges::Number& number : changes.numbers)
      if (const std::uint32_t place = place_of_node_[number.node];
          std::none_of(steps.begin(), steps.end(), [&](const auto& step) { return step.first == place; }))
        add(place);
    if (!changes.buffers.empty())
      for (std::uint32_t i = 0; i < origins_.size(); ++i)
        if (uses_one_of(origins_[i], changes.buffers)) add(i);
    if (steps.empty()) return ScheduleUpdate{};
    return update_of(TESSERA_TRY(graph_->replace(std::move(steps))));
  }

  Result<ScheduleUpdate> set_numbers(const HostExecutable& executable,
                                     std::span<const ScheduleChanges::Number> changes) {
    std::vector<runtime::StepNumber> numbers;
    for (const auto& [node, argument] : changes) {
      const description::BoundNode& bound = executable.nodes[node];
      const description::Argument& number = bound.arguments[argument];
      numbers.push_back({place_of_node_[node], description::code_argument(bound, argument), number.dtype,
                         description::number_bits(number)});
    }
    if (numbers.empty()) return ScheduleUpdate{};
    return update_of(TESSERA_TRY(graph_->set_numbers(numbers)));
  }

  /// Of steps that are no nodes. Counters do not move.
  [[nodiscard]] bool uses_one_of(const StepOrigin& origin, std::span<const std::uint32_t> buffers) const {
    const auto is_one = [&](std::uint32_t buffer) {
      return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
    };
    if (origin.kind == StepKind::zero) return is_one(origin.index);
    return origin.kind == StepKind::region && (is_one(program_->graph.condition[origin.index]) ||
                                               is_one(program_->graph.index_buffer[origin.index]));
  }

  /// The node that has the time of a step.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t step) const {
    if (origins_[step].kind == StepKind::node) return origins_[step].index;
    if (origins_[step].kind != StepKind::region) return no_index;
    const std::vector<std::uint32_t> nodes = description::nodes_in(*program_, origins_[step].index);
    return nodes.empty() ? no_index : nodes[0];
  }

  [[nodiscard]] Error blamed(std::uint32_t step, Error error) const {
    const StepOrigin& origin = origins_[step];
    const description::Description& d = *program_->description;
    if (origin.kind == StepKind::node) return description::at_node(*program_, origin.index, std::move(error));
    if (origin.kind != StepKind::region)
      return std::move(error).note(
          cat("for buffer ", description::shown(program_->graph.buffers[origin.index].name)));
    const description::Region& region = d.regions[origin.index];
    return Error(
        error.code(),
        cat(to_string(region.kind), " region ", description::shown(region.id), ": ", error.message()),
        d.span_of(region.at));
  }

  std::shared_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::StepGraph> graph_;
  std::shared_ptr<const description::Program> program_;
  std::vector<StepOrigin> origins_;           ///< by step of the graph
  std::vector<std::uint32_t> place_of_node_;  ///< its step
};

}  // namespace

Result<std::unique_ptr<description::DeviceSchedule>> tessera::engine::make_device_schedule(
    std::shared_ptr<runtime::Device> device) {
  auto out = std::make_unique<HeldSchedule>(std::move(device));
  TESSERA_TRY(out->open());
  return std::unique_ptr<description::DeviceSchedule>(std::move(out));
}
