#include "tessera/engine/planned_run.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// The results of a launch, as its entry says whose they are.
void keep_results(const PlanEntry& entry, const PlanInstance& instance, const Needed& needed,
                  std::span<const std::uint32_t> steps, std::vector<Computed>& out) {
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    const auto [local, result] = entry.results[i];
    Node* node = &needed.node(steps.empty() ? local : steps[local]);
    if (result == 0) out.push_back({.node = node, .value = std::make_unique<Storage>(instance.output(i))});
    const bool several = node->extra != nullptr && node->extra->results.size() > 1;
    if (!several) continue;
    std::vector<Storage>& results = out.back().results;
    if (results.empty()) results.reserve(node->extra->results.size());
    results.push_back(instance.output(i));
  }
}

}  // namespace

Result<void> tessera::engine::run_planned(const PlanEntry& entry, PlanInstance& instance,
                                          const Needed& needed, std::span<const std::uint32_t> steps,
                                          const PlanKey& key, std::span<const std::int64_t> symbols,
                                          runtime::MemoryPool& pool, std::vector<Computed>& out,
                                          LaunchOutcome& outcome, const LaunchOptions& options) {
  for (std::size_t i = 0; i < key.inputs.size(); ++i) instance.inputs()[i] = key.inputs[i].storage;
  if (!instance.is_prepared_for(key.sizes)) TESSERA_TRY(instance.prepare(key.sizes, symbols, outcome));
  TESSERA_TRY(instance.launch(key.parameters, pool, options, outcome));
  keep_results(entry, instance, needed, steps, out);
  instance.finish();
  return {};
}
