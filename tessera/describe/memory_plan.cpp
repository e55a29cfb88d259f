#include "tessera/describe/memory_plan.h"

#include <algorithm>

#include "tessera/base/memory_layout.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// Which steps each step of a sequence waits for.
std::vector<std::vector<std::uint32_t>> waits_of(const Sequence& sequence) {
  std::vector<std::vector<std::uint32_t>> out;
  for (const Step& step : sequence.steps) {
    auto& waits = out.emplace_back();
    for (const Wait& wait : step.waits) waits.push_back(wait.step);
  }
  return out;
}

/// Something that needs memory during some steps of a sequence: a buffer, or the inside of a region.
struct Tenant {
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> steps = {};  ///< as of a buffer's life
  std::uint64_t offset = 0;               ///< answer: from the begin of the sequence's memory
};

class LifeFinder {
 public:
  LifeFinder(const Graph& graph, const std::vector<Sequence>& sequences, const BufferScopes& scopes)
      : graph_(graph), sequences_(sequences), scopes_(scopes), life_of_(graph.buffers.size(), no_index) {}

  std::vector<BufferLife> run() {
    for (std::uint32_t scope = 0; scope < sequences_.size(); ++scope)
      for (std::uint32_t step = 0; step < sequences_[scope].steps.size(); ++step) {
        const Step& s = sequences_[scope].steps[step];
        if (s.kind == StepKind::reset_counter || s.kind == StepKind::zero) {
          add_use(s.index, scope, step);
        } else if (s.kind == StepKind::node) {
          for (const Pin& pin : graph_.nodes[s.index].pins) add_use(pin.buffer, scope, step);
        } else {
          add_use(graph_.condition[s.index], scope, step);
          add_use(graph_.index_buffer[s.index], scope, step);
        }
      }
    lift_uses();
    for (BufferLife& life : out_) std::sort(life.steps.begin(), life.steps.end());
    return std::move(out_);
  }

 private:
  void add_use(std::uint32_t buffer, std::uint32_t scope, std::uint32_t step) {
    if (buffer == no_index || graph_.buffers[buffer].lifetime != Lifetime::region) return;
    const std::uint32_t home = scopes_.common[buffer];
    if (home == scope) return add_step(buffer, step);
    std::uint32_t below = scope;  // the branch, standing in `home`, that the use is in
    while (graph_.scopes[below].parent != home) below = graph_.scopes[below].parent;
    lifted_.emplace_back(graph_.scopes[below].region, buffer);
  }
  void lift_uses() {
    std::vector<std::uint32_t> step_of_region(graph_.region_scope.size());
    for (const Sequence& sequence : sequences_)
      for (std::uint32_t step = 0; step < sequence.steps.size(); ++step)
        if (sequence.steps[step].kind == StepKind::region) step_of_region[sequence.steps[step].index] = step;
    std::sort(lifted_.begin(), lifted_.end());
    lifted_.erase(std::unique(lifted_.begin(), lifted_.end()), lifted_.end());
    for (const auto& [region, buffer] : lifted_) add_step(buffer, step_of_region[region]);
  }
  void add_step(std::uint32_t buffer, std::uint32_t step) {
    if (life_of_[buffer] == no_index) {
      life_of_[buffer] = static_cast<std::uint32_t>(out_.size());
      out_.push_back({.buffer = buffer, .steps = {}});
    }
    out_[life_of_[buffer]].steps.push_back(step);
  }

  const Graph& graph_;
  const std::vector<Sequence>& sequences_;
  const BufferScopes& scopes_;
  std::vector<BufferLife> out_;
  std::vector<std::uint32_t> life_of_;                           // by buffer: in the answer
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lifted_;  // region, buffer
};

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Sequence>& sequences)
      : graph_(graph),
        sequences_(sequences),
        scopes_(buffer_scopes(graph)),
        tenants_(graph.scopes.size()),
        tenant_of_(graph.buffers.size(), no_index),
        inner_(graph.region_scope.size(), no_index),
        bytes_(graph.scopes.size()),
        plan_(find_homes(graph, scopes_)) {}

  MemoryPlan run() {
    find_tenants();
    for (std::uint32_t scope : deepest_first(graph_)) plan_scope(scope);
    give_offsets();
    plan_.shared_bytes = bytes_[0];
    return std::move(plan_);
  }

 private:
  void find_tenants() {
    for (BufferLife& life : buffer_lives(graph_, sequences_, scopes_)) {
      auto& list = tenants_[scopes_.common[life.buffer]];
      tenant_of_[life.buffer] = static_cast<std::uint32_t>(list.size());
      list.push_back({.bytes = graph_.buffers[life.buffer].bytes, .steps = std::move(life.steps)});
    }
  }

  void plan_scope(std::uint32_t scope) {
    auto& tenants = tenants_[scope];
    for (std::uint32_t step = 0; step < sequences_[scope].steps.size(); ++step) {
      const Step& s = sequences_[scope].steps[step];
      if (s.kind != StepKind::region) continue;
      std::uint64_t bytes = 0;  // one branch runs: they share
      for (std::uint32_t b = graph_.first_branch[s.index]; b < graph_.first_branch[s.index + 1]; ++b)
        bytes = std::max(bytes, bytes_[b]);
      if (bytes == 0) continue;
      inner_[s.index] = static_cast<std::uint32_t>(tenants.size());
      tenants.push_back({.bytes = bytes, .steps = {step}});
    }
    std::vector<LiveRange> ranges;
    for (const Tenant& tenant : tenants)
      ranges.push_back({.first = tenant.steps[0],
                        .reads = {tenant.steps.begin() + 1, tenant.steps.end()},
                        .bytes = tenant.bytes});
    const MemoryLayout layout =
        lay_out(ranges, sequences_[scope].steps.size(), StepOrder(waits_of(sequences_[scope])));
    for (std::size_t i = 0; i < tenants.size(); ++i) tenants[i].offset = layout.offsets[i];
    bytes_[scope] = layout.bytes;
    if (scope == 0) plan_.lower_bound = layout.lower_bound;
  }

  void give_offsets() {
    std::vector<std::uint64_t> begin(graph_.scopes.size());
    auto outermost_first = deepest_first(graph_);
    std::reverse(outermost_first.begin(), outermost_first.end());
    for (std::uint32_t scope : outermost_first) {
      const std::uint32_t region = graph_.scopes[scope].region;
      if (region == no_index || inner_[region] == no_index) continue;
      const std::uint32_t parent = graph_.scopes[scope].parent;
      begin[scope] = saturating_sum(begin[parent], tenants_[parent][inner_[region]].offset);
    }
    for (std::uint32_t i = 0; i < graph_.buffers.size(); ++i)
      if (tenant_of_[i] != no_index)
        plan_.homes[i].offset =
            saturating_sum(begin[scopes_.common[i]], tenants_[scopes_.common[i]][tenant_of_[i]].offset);
  }

  const Graph& graph_;
  const std::vector<Sequence>& sequences_;
  BufferScopes scopes_;
  std::vector<std::vector<Tenant>> tenants_;  // by scope
  std::vector<std::uint32_t> tenant_of_;      // by buffer: in the list of its scope
  std::vector<std::uint32_t> inner_;          // by region: the tenant for its inside, in its scope
  std::vector<std::uint64_t> bytes_;          // by scope
  MemoryPlan plan_;
};

}  // namespace

std::vector<BufferLife> tessera::description::buffer_lives(const Graph& graph,
                                                           const std::vector<Sequence>& sequences,
                                                           const BufferScopes& scopes) {
  return LifeFinder(graph, sequences, scopes).run();
}

std::uint64_t MemoryPlan::peak() const {
  return saturating_sum(saturating_sum(shared_bytes, own_bytes), external_bytes);
}

MemoryPlan tessera::description::find_homes(const Graph& graph, const BufferScopes& scopes) {
  MemoryPlan out;
  out.homes.resize(graph.buffers.size());
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i) {
    const GraphBuffer& buffer = graph.buffers[i];
    if (buffer.lifetime == Lifetime::external) {
      out.homes[i].kind = Home::Kind::external;
      out.external_bytes = saturating_sum(out.external_bytes, buffer.bytes);
    } else if (buffer.lifetime == Lifetime::graph) {
      out.homes[i].kind = Home::Kind::own;
      out.own_bytes = saturating_sum(out.own_bytes, aligned_bytes(buffer.bytes));
    } else if (scopes.common[i] != no_index) {
      out.homes[i].kind = Home::Kind::shared;
      out.without_reuse = saturating_sum(out.without_reuse, aligned_bytes(buffer.bytes));
    }
  }
  return out;
}

MemoryPlan tessera::description::plan_memory(const Graph& graph, const std::vector<Sequence>& sequences) {
  return Planner(graph, sequences).run();
}
