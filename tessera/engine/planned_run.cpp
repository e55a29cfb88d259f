#include "tessera/engine/planned_run.h"

#include "tessera/base/small_vector.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// Takes from `part` what a slice takes of it, wherever that begins.
void take_slice(const Node& slice, std::uint32_t position, MovingPart& part) {
  const auto& axes = *slice.attributes().get<std::vector<std::int64_t>>("axes");
  const auto& steps = *slice.attributes().get<std::vector<std::int64_t>>("steps");
  const std::size_t entries = slice.attributes().get<op::Shape>("starts")->size();
  for (std::size_t i = 0; i < entries; ++i) {
    const std::int64_t given = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    const auto axis = static_cast<std::size_t>(given < 0 ? given + slice.rank : given);
    part.terms.push_back({position++, part.layout.strides[axis], part.layout.shape[axis]});
    part.layout =
        op::part_of(std::move(part.layout), axis, 0, slice.shape()[axis], steps.empty() ? 1 : steps[i]);
  }
}

/// The inputs that are slices of stored tensors.
PlanInstance::Parts parts_of(const PlanEntry& entry, const Needed& needed,
                             std::span<const std::uint32_t> steps, const PlanKey& key) {
  PlanInstance::Parts out;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    const auto& [input, slices] = entry.inputs[i];
    if (slices.empty()) continue;
    out.resize(entry.inputs.size());
    MovingPart& part = out[i].emplace(MovingPart{key.inputs[input].storage->layout, {}});
    for (const auto& [step, position] : slices)
      take_slice(needed.node(steps.empty() ? step : steps[step]), position, part);
  }
  return out;
}

void set_inputs(const PlanEntry& entry, const PlanKey& key, PlanInstance& instance) {
  const PlanInstance::Parts& parts = instance.parts();
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    PlanInstance::Input& input = instance.inputs()[i];
    input.storage = key.inputs[entry.inputs[i].input].storage;
    input.is_part = !entry.inputs[i].slices.empty();
    // Before it is prepared for the first time, there are none.
    if (input.is_part && i < parts.size()) input.offset = parts[i]->offset(key.positions());
  }
}

SmallVector<std::uint64_t, 16> parameters_of(const PlanEntry& entry, const PlanKey& key) {
  SmallVector<std::uint64_t, 16> out;
  for (const auto [kind, index] : entry.parameters)
    out.push_back(kind == LiftedParameter::Kind::number ? key.parameters[index]
                                                        : static_cast<std::uint64_t>(key.positions()[index]));
  return out;
}

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
  set_inputs(entry, key, instance);
  if (!instance.is_prepared_for(key.extents())) {
    TESSERA_TRY(instance.prepare(key.extents(), symbols, parts_of(entry, needed, steps, key), outcome));
    set_inputs(entry, key, instance);
  }
  TESSERA_TRY(instance.launch(parameters_of(entry, key), pool, options, outcome));
  keep_results(entry, instance, needed, steps, out);
  instance.finish();
  return {};
}
