#include "tessera/engine/planned_run.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

constexpr std::size_t ring_length = 4;

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return cat(count, " ", count == 1 ? one : many);
}

class PlannedRun {
 public:
  PlannedRun(const PlanEntry& entry, PlanInstance& instance, const PlanKey& key, runtime::MemoryPool& pool,
             PlannedOutcome& outcome)
      : entry_(entry), instance_(instance), key_(key), pool_(pool), outcome_(outcome) {}

  /// The nodes of the component, for what a key does not say.
  struct Steps {
    const Needed& needed;
    std::span<const std::uint32_t> steps;

    [[nodiscard]] const Node& node(std::uint32_t local) const {
      return needed.node(steps.empty() ? local : steps[local]);
    }
  };

  Result<void> run(const Steps& steps, std::span<const std::int64_t> symbols, const LaunchOptions& options) {
    const bool is_first = !instance_.is_prepared;
    const bool is_prepared_now = TESSERA_TRY(set_sizes(steps, symbols));
    set_inputs();
    if (!options.keeps_copies) std::fill(instance_.buffers.begin(), instance_.buffers.end(), nullptr);
    set_parameters();
    TESSERA_TRY(set_outputs());
    TESSERA_TRY(instance_.executable->run({.inputs = instance_.inputs,
                                           .parameters = instance_.parameters,
                                           .outputs = instance_.outputs,
                                           .buffers = instance_.buffers,
                                           .times = options.times}));
    note_update(is_first, is_prepared_now);
    outcome_.figures.kernels += instance_.kernels;
    outcome_.figures.views += instance_.views;
    return {};
  }

  /// The storage of an output.
  [[nodiscard]] Storage storage(std::size_t output) const {
    const plan::Place& place = instance_.executable->binding().output(*entry_.plan, output);
    Storage out{{}, place.layout};
    if (place.where == plan::Where::input) {
      const Storage& input = storage_of_input(place.index);
      out.buffer = input.buffer;
      out.layout.offset += input.layout.offset + instance_.offsets[place.index].elements;
    } else {
      out.buffer = used_[place.index];
    }
    return out;
  }

 private:
  [[nodiscard]] const Storage& storage_of_input(std::size_t i) const {
    return *key_.inputs[entry_.inputs[i].input].storage;
  }

  /// Whether the executable had to be prepared for them.
  Result<bool> set_sizes(const Steps& steps, std::span<const std::int64_t> symbols) {
    const bool first = !instance_.is_prepared;
    if (instance_.is_prepared_for(key_)) return false;
    std::vector<op::Layout> layouts;
    std::vector<InputOffset> offsets(entry_.inputs.size());
    for (std::size_t i = 0; i < entry_.inputs.size(); ++i) {
      layouts.push_back(storage_of_input(i).layout);
      layouts.back().offset = 0;
      for (const LiftedSlice& slice : entry_.inputs[i].slices)
        take_slice(steps.node(slice.step), slice.first_position, layouts.back(), offsets[i]);
    }
    TESSERA_TRY(instance_.executable->prepare(symbols, layouts));
    note_executable();
    instance_.offsets = std::move(offsets);
    instance_.is_prepared = true;
    instance_.sizes.assign(key_.extents().begin(), key_.extents().end());
    instance_.ring.clear();
    instance_.ring.resize(instance_.executable->binding().buffers.size());
    if (first) return true;
    raise(Tier::warm, "sizes");
    for (std::size_t s = 0; s < symbols.size(); ++s)
      outcome_.cause += cat(s == 0 ? " " : ", ", "d", s, "=", symbols[s]);
    return true;
  }

  /// The layout of a slice, but for where it begins.
  static void take_slice(const Node& slice, std::uint32_t position, op::Layout& layout, InputOffset& offset) {
    const auto& axes = *slice.attributes().get<std::vector<std::int64_t>>("axes");
    const auto& steps = *slice.attributes().get<std::vector<std::int64_t>>("steps");
    const std::size_t entries = slice.attributes().get<op::Shape>("starts")->size();
    for (std::size_t i = 0; i < entries; ++i) {
      const std::int64_t given = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
      const auto axis = static_cast<std::size_t>(given < 0 ? given + slice.rank : given);
      offset.terms.push_back({position++, layout.strides[axis], layout.shape[axis]});
      layout = op::part_of(std::move(layout), axis, 0, slice.shape()[axis], steps.empty() ? 1 : steps[i]);
    }
  }

  std::byte* first_element(std::size_t i) {
    const Storage& storage = storage_of_input(i);
    InputOffset& offset = instance_.offsets[i];
    offset.elements = 0;
    for (const InputOffset::Term& term : offset.terms) {
      const std::int64_t position = key_.positions()[term.position];
      offset.elements += (position < 0 ? position + term.size : position) * term.stride;
    }
    const auto width =
        static_cast<std::int64_t>(ir::size_of(key_.inputs[entry_.inputs[i].input].node->dtype));
    return storage.buffer->data() + (storage.layout.offset + offset.elements) * width;
  }

  void set_inputs() {
    std::size_t moved = 0;
    const std::size_t count = entry_.inputs.size();
    const bool first = instance_.inputs.size() != count;
    instance_.inputs.resize(count);
    instance_.buffers.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* at = first_element(i);
      moved += instance_.inputs[i] != at;
      instance_.inputs[i] = at;
      // What is derived from a part is for one launch: the next one has another.
      const bool moves = !entry_.inputs[i].slices.empty();
      const runtime::Buffer& buffer = *storage_of_input(i).buffer;
      instance_.buffers[i] = buffer.tells_changes() && !moves ? &buffer : nullptr;
    }
    if (moved > 0 && !first) raise(Tier::warm, counted(moved, "buffer", "buffers"));
  }

  void note_executable() {
    const std::vector<bool>& is_view = instance_.executable->binding().is_view;
    instance_.views = static_cast<std::uint64_t>(std::count(is_view.begin(), is_view.end(), true));
    instance_.kernels = is_view.size() - instance_.views;
    instance_.updates = dynamic_cast<const runtime::HoldsLaunches*>(instance_.executable.get());
  }

  void set_parameters() {
    std::size_t changed = 0;
    const bool first = instance_.parameters.size() != entry_.parameters.size();
    instance_.parameters.resize(entry_.parameters.size());
    for (std::size_t i = 0; i < entry_.parameters.size(); ++i) {
      const auto [kind, index] = entry_.parameters[i];
      const std::uint64_t value = kind == LiftedParameter::Kind::number
                                      ? key_.parameters[index]
                                      : static_cast<std::uint64_t>(key_.positions()[index]);
      changed += instance_.parameters[i] != value;
      instance_.parameters[i] = value;
    }
    if (changed > 0 && !first) raise(Tier::hot, counted(changed, "number", "numbers"));
  }

  Result<void> set_outputs() {
    const auto& buffers = instance_.executable->binding().buffers;
    instance_.outputs.resize(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      used_.push_back(TESSERA_TRY(output_buffer(instance_.ring[i], buffers[i].bytes)));
      instance_.outputs[i] = used_.back()->data();
    }
    return {};
  }

  Result<Ref<runtime::Buffer>> output_buffer(std::vector<Ref<runtime::Buffer>>& ring, std::int64_t bytes) {
    for (const Ref<runtime::Buffer>& buffer : ring)
      if (buffer->unique()) return buffer->begin_write(), buffer;
    Ref<runtime::Buffer> fresh = TESSERA_TRY(pool_.allocate(static_cast<std::size_t>(bytes)));
    if (ring.size() < ring_length) ring.push_back(fresh);
    return fresh;
  }

  /// What the device had to do may be more than what changed says: the first launch makes everything, and is
  /// cold for whoever knows why there was one.
  void note_update(bool is_first, bool is_prepared_now) {
    if (instance_.updates == nullptr) return;
    const runtime::LaunchUpdate update = instance_.updates->launch_update();
    if (is_prepared_now || update.is_remade) instance_.driven = instance_.updates->driven_by_host();
    if (!instance_.driven.empty()) outcome_.driven = instance_.driven;
    if (is_first) return;
    if (update.recaptured > 0) raise(Tier::recapture, counted(update.recaptured, "capture", "captures"));
    if (update.new_code > 0) raise(Tier::code, counted(update.new_code, "new kernel", "new kernels"));
    if (update.is_remade) raise(Tier::cold, "its graph was made anew");
    if (update.time.count() > 0 && !outcome_.cause.empty())
      outcome_.cause += cat(" in ", update.time.count() / 1000, " us");
  }

  void raise(Tier tier, std::string_view cause) {
    outcome_.tier = std::max(outcome_.tier, tier);
    if (!outcome_.cause.empty()) outcome_.cause += ", ";
    outcome_.cause += cause;
  }

  const PlanEntry& entry_;
  PlanInstance& instance_;
  const PlanKey& key_;
  runtime::MemoryPool& pool_;
  PlannedOutcome& outcome_;
  SmallVector<Ref<runtime::Buffer>, 8> used_;
};

}  // namespace

Result<void> tessera::engine::run_planned(const PlanEntry& entry, PlanInstance& instance,
                                          const Needed& needed, std::span<const std::uint32_t> steps,
                                          const PlanKey& key, std::span<const std::int64_t> symbols,
                                          runtime::MemoryPool& pool, std::vector<Computed>& out,
                                          PlannedOutcome& outcome, const LaunchOptions& options) {
  PlannedRun run(entry, instance, key, pool, outcome);
  TESSERA_TRY(run.run({needed, steps}, symbols, options));
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    const auto [local, result] = entry.results[i];
    Node* node = &needed.node(steps.empty() ? local : steps[local]);
    if (result == 0) out.push_back({.node = node, .value = std::make_unique<Storage>(run.storage(i))});
    const bool several = node->extra != nullptr && node->extra->results.size() > 1;
    if (!several) continue;
    std::vector<Storage>& results = out.back().results;
    if (results.empty()) results.reserve(node->extra->results.size());
    results.push_back(run.storage(i));
  }
  return {};
}
