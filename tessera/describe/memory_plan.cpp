#include "tessera/describe/memory_plan.h"

#include <algorithm>

#include "tessera/base/memory_layout.h"
#include "tessera/describe/uses.h"

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
  std::vector<std::uint32_t> steps = {};  ///< that use it, ascending; the first is before all others
  std::uint64_t offset = 0;               ///< answer: from the begin of the sequence's memory
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
        bytes_(graph.scopes.size()) {
    plan_.homes.resize(graph.buffers.size());
  }

  MemoryPlan run() {
    place_permanent();
    find_tenants();
    for (std::uint32_t scope : deepest_first()) plan_scope(scope);
    give_offsets();
    plan_.shared_bytes = bytes_[0];
    return std::move(plan_);
  }

 private:
  void place_permanent() {
    for (std::uint32_t i = 0; i < graph_.buffers.size(); ++i) {
      const GraphBuffer& buffer = graph_.buffers[i];
      if (buffer.lifetime == Lifetime::external) {
        plan_.homes[i].kind = Home::Kind::external;
        plan_.external_bytes = saturating_sum(plan_.external_bytes, buffer.bytes);
      } else if (buffer.lifetime == Lifetime::graph) {
        plan_.homes[i].kind = Home::Kind::own;
        plan_.own_bytes = saturating_sum(plan_.own_bytes, aligned_bytes(buffer.bytes));
      } else if (scopes_.common[i] != no_index) {
        plan_.homes[i].kind = Home::Kind::shared;
        plan_.without_reuse = saturating_sum(plan_.without_reuse, aligned_bytes(buffer.bytes));
      }
    }
  }

  /// Which steps, of the sequence where a temporary buffer lives, use it.
  void find_tenants() {
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
    // A use inside a region is one of the region's step, in the scope where the buffer lives.
    lift_uses();
    for (auto& list : tenants_)
      for (Tenant& tenant : list) std::sort(tenant.steps.begin(), tenant.steps.end());
  }

  void add_use(std::uint32_t buffer, std::uint32_t scope, std::uint32_t step) {
    if (buffer == no_index || plan_.homes[buffer].kind != Home::Kind::shared) return;
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
    auto& list = tenants_[scopes_.common[buffer]];
    if (tenant_of_[buffer] == no_index) {
      tenant_of_[buffer] = static_cast<std::uint32_t>(list.size());
      list.push_back({.bytes = graph_.buffers[buffer].bytes});
    }
    list[tenant_of_[buffer]].steps.push_back(step);
  }

  [[nodiscard]] std::vector<std::uint32_t> deepest_first() const {
    std::vector<std::uint32_t> out(graph_.scopes.size());
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i;
    std::stable_sort(out.begin(), out.end(),
                     [&](auto a, auto b) { return graph_.scopes[a].depth > graph_.scopes[b].depth; });
    return out;
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
    auto outermost_first = deepest_first();
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
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lifted_;  // region, buffer
  MemoryPlan plan_;
};

}  // namespace

std::uint64_t MemoryPlan::peak() const {
  return saturating_sum(saturating_sum(shared_bytes, own_bytes), external_bytes);
}

MemoryPlan tessera::description::plan_memory(const Graph& graph, const std::vector<Sequence>& sequences) {
  return Planner(graph, sequences).run();
}
