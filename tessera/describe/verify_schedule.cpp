#include "tessera/describe/verify_schedule.h"

#include <algorithm>
#include <map>

#include "tessera/base/memory_layout.h"
#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/memory_plan.h"
#include "tessera/describe/program_order.h"
#include "tessera/describe/resolve.h"
#include "tessera/describe/sequence_uses.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Error wrong(std::string message) {
  return Error(ErrorCode::parse, "the schedule is wrong: " + std::move(message));
}

using StepWaits = std::vector<std::vector<std::uint32_t>>;

/// By step, those that it waits for, ascending.
StepWaits sorted_waits(const Sequence& sequence) {
  StepWaits out;
  for (const Step& step : sequence.steps) {
    auto& waits = out.emplace_back();
    for (const Wait& wait : step.waits) waits.push_back(wait.step);
    std::sort(waits.begin(), waits.end());
  }
  return out;
}

// ---- the order

class OrderVerifier {
 public:
  OrderVerifier(const Graph& graph, const std::vector<Sequence>& sequences)
      : graph_(graph),
        sequences_(sequences),
        scopes_(buffer_scopes(graph)),
        node_step_(graph.nodes.size(), no_index),
        region_step_(graph.region_scope.size(), no_index),
        uses_(graph, sequences) {}

  Result<void> run() {
    if (sequences_.size() != graph_.scopes.size())
      return wrong(cat("it has ", sequences_.size(), " sequences, the regions need ", graph_.scopes.size()));
    for (std::uint32_t scope = 0; scope < sequences_.size(); ++scope) {
      std::uint32_t levels = 0;
      for (std::uint32_t s = 0; s < sequences_[scope].steps.size(); ++s) {
        TESSERA_TRY(step(scope, s));
        levels = std::max(levels, sequences_[scope].steps[s].level + 1);
      }
      if (sequences_[scope].levels != levels) return wrong("a sequence has other levels than its steps");
    }
    TESSERA_TRY(nothing_left_out());
    for (const Sequence& sequence : sequences_) waits_.push_back(sorted_waits(sequence));
    for (const Order& order : graph_.orders) TESSERA_TRY(stated(order));
    for (const std::uint32_t scope : deepest_first(graph_)) TESSERA_TRY(accesses(scope));
    return {};
  }

 private:
  Result<void> step(std::uint32_t scope, std::uint32_t s) {
    const Step& step = sequences_[scope].steps[s];
    std::uint32_t level = 0;
    for (const Wait& wait : step.waits) {
      if (wait.step >= s) return wrong("a step waits for one that comes later");
      if (wait.what >= things(wait.cause)) return wrong("a step waits for no reason");
      level = std::max(level, sequences_[scope].steps[wait.step].level + 1);
    }
    if (step.level != level) return wrong("a step has another level than its waits say");
    switch (step.kind) {
      case StepKind::node:
        return item(step.index, s, node_step_, [&] { return graph_.nodes[step.index].scope == scope; });
      case StepKind::region:
        return item(step.index, s, region_step_, [&] { return graph_.region_scope[step.index] == scope; });
      case StepKind::reset_counter:
      case StepKind::zero:
        return step.index < graph_.buffers.size() ? Result<void>() : wrong("a step is of no buffer");
    }
    return {};
  }

  /// A node or a region, once, in the scope it stands in.
  template <class StandsHere>
  static Result<void> item(std::uint32_t index, std::uint32_t step, std::vector<std::uint32_t>& known,
                           const StandsHere& stands_here) {
    if (index >= known.size() || known[index] != no_index || !stands_here())
      return wrong("a step is of no node or region, or of one that runs elsewhere");
    known[index] = step;
    return {};
  }

  [[nodiscard]] std::size_t things(Cause cause) const {
    if (cause == Cause::edge) return graph_.description->edges.size();
    return cause == Cause::dependency ? graph_.description->dependencies.size() : graph_.buffers.size();
  }

  [[nodiscard]] Result<void> nothing_left_out() const {
    const auto check = [&](const std::vector<std::uint32_t>& steps, bool are_regions) -> Result<void> {
      for (std::uint32_t i = 0; i < steps.size(); ++i)
        if (steps[i] == no_index) return wrong(cat(shown(graph_.id_of({are_regions, i})), " never runs"));
      return {};
    };
    TESSERA_TRY(check(node_step_, false));
    return check(region_step_, true);
  }

  [[nodiscard]] std::uint32_t step_of(const Item& item) const {
    return item.is_region ? region_step_[item.index] : node_step_[item.index];
  }
  [[nodiscard]] bool has_wait(std::uint32_t scope, std::uint32_t before, std::uint32_t after) const {
    const auto& waits = waits_[scope][after];
    return std::binary_search(waits.begin(), waits.end(), before);
  }

  [[nodiscard]] Result<void> stated(const Order& order) const {
    const std::uint32_t scope =
        graph_.common_scope(graph_.scope_of(order.before), graph_.scope_of(order.after));
    const std::uint32_t before = step_of(graph_.lifted(order.before, scope));
    const std::uint32_t after = step_of(graph_.lifted(order.after, scope));
    if (has_wait(scope, before, after)) return {};
    return wrong(cat(shown(graph_.id_of(order.after)), " does not wait for ",
                     shown(graph_.id_of(order.before)), ", as an edge or a dependency says"));
  }

  Result<void> accesses(std::uint32_t scope) {
    const std::vector<ItemUse> all = uses_.of(scope);
    Result<void> out;
    for_each_buffer(all, [&](std::span<const ItemUse> uses) {
      if (out) out = accesses(scope, uses);
    });
    return out;
  }

  /// The uses of one buffer, by step.
  Result<void> accesses(std::uint32_t scope, std::span<const ItemUse> uses) {
    const GraphBuffer& buffer = graph_.buffers[uses[0].use.buffer];
    TESSERA_TRY(resets_and_zeros(scope, uses));
    bool is_ordered = true;
    WaitMaker waits([&](std::uint32_t before, std::uint32_t after, Cause) {
      is_ordered &= has_wait(scope, before, after);
    });
    std::vector<ItemUse> items;  // without resets and zeros
    for (const ItemUse& one : uses) {
      Use use = one.use;
      use.reads |= use.may_skip;  // what was zeroed for it
      waits.use(one.item, use);
      if (uses_.is_item(scope, one)) items.push_back(one);
    }
    if (!is_ordered) return wrong(cat("steps use buffer ", shown(buffer.name), " at the same time"));
    const bool lives_here =
        buffer.lifetime == Lifetime::region && scopes_.common[items[0].use.buffer] == scope;
    const bool is_reset = items.size() < uses.size() && kind(scope, uses[0]) == StepKind::reset_counter;
    if (lives_here && !is_reset && find_early_look(items))
      return wrong(cat("buffer ", shown(buffer.name), " is read before anything writes it"));
    if (!lives_here) uses_.add(scope, items);
    return {};
  }

  [[nodiscard]] StepKind kind(std::uint32_t scope, const ItemUse& use) const {
    return sequences_[scope].steps[use.item].kind;
  }

  /// A counter is reset first, in one scope; what a region may skip is zeroed just before, and nothing else.
  [[nodiscard]] Result<void> resets_and_zeros(std::uint32_t scope, std::span<const ItemUse> uses) const {
    const std::uint32_t index = uses[0].use.buffer;
    const GraphBuffer& buffer = graph_.buffers[index];
    const bool is_reset = buffer.is_appended && BufferScopes::reset_scope(graph_, index) == scope;
    bool has_items = false;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const bool is_zeroed = i > 0 && kind(scope, uses[i - 1]) == StepKind::zero;
      const bool must_be_zeroed = uses_.is_item(scope, uses[i]) && uses[i].use.may_skip;
      const bool must_be_reset = is_reset && i == 0;
      if (is_zeroed != must_be_zeroed || (kind(scope, uses[i]) == StepKind::reset_counter) != must_be_reset)
        return wrong(cat("buffer ", shown(buffer.name), " is not reset or zeroed where it must be"));
      has_items |= uses_.is_item(scope, uses[i]);
    }
    if (!has_items || kind(scope, uses.back()) == StepKind::zero)
      return wrong(cat("buffer ", shown(buffer.name), " is reset or zeroed for nobody"));
    return {};
  }

  const Graph& graph_;
  const std::vector<Sequence>& sequences_;
  BufferScopes scopes_;
  std::vector<std::uint32_t> node_step_;    // by node: where it stands in its sequence
  std::vector<std::uint32_t> region_step_;  // by region
  std::vector<StepWaits> waits_;            // by scope
  SequenceUses uses_;
};

// ---- the memory

/// Bytes that are used during some steps of a sequence.
struct HeldBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<std::uint32_t> steps = {};  ///< ascending; the first is before all others
};

class MemoryVerifier {
 public:
  MemoryVerifier(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        sequences_(schedule.sequences),
        memory_(schedule.memory),
        scopes_(buffer_scopes(graph)),
        held_(graph.scopes.size()) {}

  Result<void> run() {
    TESSERA_TRY(homes());
    for (const BufferLife& life : buffer_lives(graph_, sequences_, scopes_)) {
      const std::uint64_t begin = memory_.homes[life.buffer].offset;
      const std::uint64_t bytes = graph_.buffers[life.buffer].bytes;
      if (bytes != 0)
        held_[scopes_.common[life.buffer]].push_back({begin, saturating_sum(begin, bytes), life.steps});
    }
    for (const std::uint32_t scope : deepest_first(graph_)) TESSERA_TRY(sequence(scope));
    return {};
  }

 private:
  [[nodiscard]] Result<void> homes() const {
    const MemoryPlan expected = find_homes(graph_, scopes_);
    if (memory_.homes.size() != expected.homes.size()) return wrong("not every buffer has a home");
    for (std::uint32_t i = 0; i < memory_.homes.size(); ++i) {
      const Home& home = memory_.homes[i];
      const bool is_shared = home.kind == Home::Kind::shared;
      const std::uint64_t end = saturating_sum(home.offset, is_shared ? graph_.buffers[i].bytes : 0);
      if (home.kind != expected.homes[i].kind || home.offset % memory_alignment != 0 ||
          end > (is_shared ? memory_.shared_bytes : 0))
        return wrong(cat("buffer ", shown(graph_.buffers[i].name), " lies where it cannot"));
    }
    if (memory_.own_bytes != expected.own_bytes || memory_.external_bytes != expected.external_bytes ||
        memory_.without_reuse != expected.without_reuse || memory_.lower_bound > memory_.shared_bytes)
      return wrong("the sums of its memory are others");
    return {};
  }

  /// What a region needs inside is used by its step, as one piece; of its branches one runs.
  [[nodiscard]] HeldBytes inside(std::uint32_t region, std::uint32_t step) const {
    HeldBytes out{.begin = memory_.shared_bytes, .end = 0, .steps = {step}};
    for (std::uint32_t b = graph_.first_branch[region]; b < graph_.first_branch[region + 1]; ++b)
      for (const HeldBytes& one : held_[b]) {
        out.begin = std::min(out.begin, one.begin);
        out.end = std::max(out.end, one.end);
      }
    return out;
  }

  Result<void> sequence(std::uint32_t scope) {
    auto& held = held_[scope];
    const auto& steps = sequences_[scope].steps;
    for (std::uint32_t s = 0; s < steps.size(); ++s)
      if (steps[s].kind == StepKind::region)
        if (HeldBytes inner = inside(steps[s].index, s); inner.begin < inner.end)
          held.push_back(std::move(inner));
    if (held.size() < 2) return {};
    std::stable_sort(held.begin(), held.end(),
                     [](const HeldBytes& a, const HeldBytes& b) { return a.steps[0] < b.steps[0]; });
    const StepOrder order(sorted_waits(sequences_[scope]));
    std::map<std::uint64_t, Piece> last;
    for (const HeldBytes& one : held)
      if (!move_in(one, order, last)) return wrong("two buffers lie in the same place at once");
    return {};
  }

  /// Bytes up to `end`, and who had them last.
  struct Piece {
    std::uint64_t end = 0;
    const HeldBytes* holder = nullptr;
  };

  /// Whether all who had any of the bytes are gone before. Those before them were gone before they came.
  static bool move_in(const HeldBytes& one, const StepOrder& order, std::map<std::uint64_t, Piece>& last) {
    auto at = last.upper_bound(one.begin);
    if (at != last.begin()) --at;
    while (at != last.end() && at->first < one.end) {
      const auto [begin, piece] = *at;
      if (piece.end <= one.begin) {
        ++at;
        continue;
      }
      for (const std::uint32_t step : piece.holder->steps)
        if (!order.is_before(step, one.steps[0])) return false;
      at = last.erase(at);
      if (begin < one.begin) last.emplace(begin, Piece{one.begin, piece.holder});
      if (piece.end > one.end) last.emplace(one.end, piece);
    }
    last.emplace(one.begin, Piece{one.end, &one});
    return true;
  }

  const Graph& graph_;
  const std::vector<Sequence>& sequences_;
  const MemoryPlan& memory_;
  BufferScopes scopes_;
  std::vector<std::vector<HeldBytes>> held_;  // by scope
};

// ---- the description

template <class List>
bool are_complete(const List& list) {
  return std::none_of(list.begin(), list.end(), [](const auto& thing) { return thing.incomplete; });
}

/// What no reader of descriptions lets through.
Result<void> check_parts(const Description& d) {
  if (!are_complete(d.buffers) || !are_complete(d.nodes) || !are_complete(d.edges) ||
      !are_complete(d.regions))
    return wrong("a part of the description was not read");
  for (const Node& node : d.nodes)
    for (const auto& [name, attribute] : node.attributes.entries())
      if (const auto* shape = std::get_if<op::Shape>(&attribute);
          shape != nullptr && !ir::constant_shape(*shape))
        return wrong(
            cat("attribute ", shown(name), " of node ", shown(node.id), " has sizes that are no numbers"));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Program>> tessera::description::verified_program(
    std::shared_ptr<const Description> description, Schedule schedule) {
  TESSERA_TRY(check_parts(*description));
  Report report;
  auto out = std::make_shared<Program>();
  out->description = std::move(description);
  out->graph = resolve(*out->description, report);
  check_homes(out->graph, report);
  if (!report.ok()) return report.to_error();
  out->schedule = std::move(schedule);
  TESSERA_TRY(OrderVerifier(out->graph, out->schedule.sequences).run());
  check_types(out->graph, out->schedule.sequences, report);
  if (!report.ok()) return report.to_error();
  for (const GraphNode& node : out->graph.nodes)
    for (const Pin& pin : node.pins)
      if (pin.buffer != no_index && !out->graph.buffers[pin.buffer].has_type)
        return wrong(cat("buffer ", shown(out->graph.buffers[pin.buffer].name), " has no type"));
  TESSERA_TRY(MemoryVerifier(out->graph, out->schedule).run());
  return std::shared_ptr<const Program>(std::move(out));
}
