#include "tessera/plan/binding.h"

#include <algorithm>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/plan/known_sizes.h"
#include "tessera/plan/size_conditions.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

constexpr std::uint32_t none = 0xffffffff;

class Binder {
 public:
  Binder(const Plan& plan, std::span<const std::int64_t> sizes) : plan_(plan) {
    out_.sizes.assign(sizes.begin(), sizes.end());
    out_.places.resize(plan.values.size());
    out_.is_view.assign(plan.steps.size(), false);
    out_.attributes.resize(plan.steps.size());
    out_.input_types.resize(plan.steps.size());
    types_.resize(plan.values.size());
    root_.assign(plan.values.size(), none);
  }

  Result<Binding> run(std::span<const op::Layout> inputs) {
    TESSERA_TRY(given_values(inputs));
    for (StepId s = 0; s < plan_.steps.size(); ++s) TESSERA_TRY(step(s));
    place_outputs();
    find_ranges();
    for (ValueId v = 0; v < plan_.values.size(); ++v) follow_root(v);
    out_.roots = std::move(root_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] KnownSizes known() const { return {plan_.dims, out_.sizes}; }

  Result<void> given_values(std::span<const op::Layout> inputs) {
    std::uint32_t next_cell = static_cast<std::uint32_t>(plan_.parameters.size());
    for (ValueId v = 0; v < plan_.values.size(); ++v) {
      const Value& value = plan_.values[v];
      if (value.kind == ValueKind::computed) continue;
      types_[v] = TESSERA_TRY(known().of(value.type));
      root_[v] = v;
      Place& place = out_.places[v];
      place.index = value.index;
      place.layout = op::contiguous(op::extents_of(types_[v].shape));
      if (value.kind == ValueKind::input) {
        place.where = Where::input;
        if (inputs[value.index].shape != place.layout.shape)
          return wrong_input(value, types_[v], inputs[value.index]);
        place.layout = inputs[value.index];
      } else if (value.kind == ValueKind::constant) {
        place.where = Where::constant;
      } else {
        place.where = Where::cell;
        if (value.kind == ValueKind::size) {
          place.index = next_cell++;
          out_.size_cells.push_back(TESSERA_TRY(known().of(value.size)));
        }
      }
    }
    return {};
  }

  static Error wrong_input(const Value& value, const op::ValueType& expected, const op::Layout& given) {
    return Error(ErrorCode::shape, cat("input ", value.index, " of the plan has shape [",
                                       join(given.shape, ", "), "], expected ", expected));
  }

  Result<void> step(StepId s) {
    const Step& step = plan_.steps[s];
    for (const ValueId input : step.inputs) out_.input_types[s].push_back(types_[input]);
    for (const ValueId result : step.results) {
      types_[result] = TESSERA_TRY(known().of(plan_.values[result].type));
      root_[result] = result;
      out_.places[result].layout = op::contiguous(op::extents_of(types_[result].shape));
    }
    for (const InPlace& pair : step.in_place) share(step.inputs[pair.input], step.results[pair.result]);
    if (step.kind != StepKind::call) return {};
    out_.attributes[s] = TESSERA_TRY(known().of(step.attributes));
    if (step.card->view == nullptr) return {};
    const op::CallInfo call(*step.card, out_.input_types[s], out_.attributes[s]);
    const ValueId from = step.inputs[0];
    // What is given with the plan is no memory that an output could look at.
    const ValueKind root = plan_.values[root_[from]].kind;
    if (root != ValueKind::input && root != ValueKind::computed) return {};
    if (const auto layout = step.card->view(call, out_.places[from].layout)) {
      out_.is_view[s] = true;
      out_.places[step.results[0]].layout = *layout;
      root_[step.results[0]] = root_[from];
    }
    return {};
  }

  /// The result lies where the input does, if that is memory of the plan and the input fills it in order.
  void share(ValueId input, ValueId result) {
    const ValueId root = root_[input];
    if (plan_.values[root].kind != ValueKind::computed || bytes_of(root) != bytes_of(result)) return;
    if (out_.places[input].layout != out_.places[result].layout) return;
    root_[result] = root;
  }

  [[nodiscard]] std::int64_t bytes_of(ValueId v) const {
    return op::element_count(op::extents_of(types_[v].shape)) *
           static_cast<std::int64_t>(ir::size_of(types_[v].dtype));
  }

  void place_outputs() {
    is_output_root_.assign(plan_.values.size(), false);
    for (const ValueId output : plan_.outputs) {
      const ValueId root = root_[output];
      if (plan_.values[root].kind != ValueKind::computed || is_output_root_[root]) continue;
      is_output_root_[root] = true;
      out_.places[root].where = Where::output;
      out_.places[root].index = static_cast<std::uint32_t>(out_.buffers.size());
      out_.buffers.push_back({bytes_of(root)});
    }
  }

  /// A value lives until the last step that reads it or a view of it.
  void find_ranges() {
    std::vector<std::uint32_t> life_of(plan_.values.size(), none);
    std::vector<LiveRange>& ranges = out_.ranges;
    for (StepId s = 0; s < plan_.steps.size(); ++s) {
      for (const ValueId input : plan_.steps[s].inputs)
        if (const std::uint32_t life = life_of[root_[input]]; life != none && !out_.is_view[s])
          ranges[life].reads.push_back(s);
      for (const ValueId result : plan_.steps[s].results) {
        if (root_[result] != result || is_output_root_[result]) continue;
        life_of[result] = static_cast<std::uint32_t>(ranges.size());
        ranges.push_back({.first = s, .reads = {}, .bytes = static_cast<std::uint64_t>(bytes_of(result))});
        out_.temporaries.push_back(result);
        out_.places[result].where = Where::scratch;
      }
    }
  }

  void follow_root(ValueId v) {
    const ValueId root = root_[v];
    if (root == v || root == none) return;
    const Place& from = out_.places[root];
    out_.places[v].where = from.where;
    out_.places[v].index = from.index;
    out_.places[v].byte = from.byte;
  }

  const Plan& plan_;
  Binding out_;
  std::vector<op::ValueType> types_;  ///< by value, with numbers
  std::vector<ValueId> root_;         ///< by value: whose memory it looks at
  std::vector<bool> is_output_root_;
};

}  // namespace

Result<Binding> plan::find_lives(const Plan& plan, std::span<const std::int64_t> sizes,
                                 std::span<const op::Layout> inputs) {
  if (sizes.size() != plan.dims.size() || inputs.size() != plan.inputs.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the plan has ", plan.dims.size(), " sizes and ", plan.inputs.size(), " inputs, got ",
                     sizes.size(), " and ", inputs.size()));
  if (const auto pair = TESSERA_TRY(unequal_sizes(plan, sizes))) {
    const KnownSizes known{plan.dims, sizes};
    return Error(ErrorCode::shape,
                 cat("the plan needs ", pair->first, " = ", pair->second, ", but they are ",
                     TESSERA_TRY(known.of(pair->first)), " and ", TESSERA_TRY(known.of(pair->second))));
  }
  return Binder(plan, sizes).run(inputs);
}

void plan::hold_over(std::span<const StepSpan> spans, Binding& binding) {
  const auto together_with = [&](StepId step) {
    const auto behind = std::upper_bound(spans.begin(), spans.end(), step,
                                         [](StepId s, const StepSpan& span) { return s < span.first; });
    if (behind == spans.begin() || std::prev(behind)->last < step) return StepSpan{step, step};
    return *std::prev(behind);
  };
  for (LiveRange& range : binding.ranges) {
    range.first = together_with(range.first).first;
    for (std::uint32_t& read : range.reads) read = together_with(read).last;
  }
}

void plan::assign_buffers(Binding& binding, MemoryLayout layout) {
  binding.memory = std::move(layout);
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i)
    binding.places[binding.temporaries[i]].byte = static_cast<std::int64_t>(binding.memory.offsets[i]);
  for (std::size_t v = 0; v < binding.places.size(); ++v)
    if (const ValueId root = binding.roots[v]; root != none && root != v)
      binding.places[v].byte = binding.places[root].byte;
}

void plan::assign_buffers(const Plan& plan, Binding& binding, Running running) {
  assign_buffers(binding, running == Running::one_by_one
                              ? lay_out(binding.ranges, plan.steps.size())
                              : lay_out(binding.ranges, plan.steps.size(), StepOrder(dependencies(plan))));
}

Result<Binding> plan::bind(const Plan& plan, std::span<const std::int64_t> sizes,
                           std::span<const op::Layout> inputs, Running running) {
  Binding out = TESSERA_TRY(find_lives(plan, sizes, inputs));
  assign_buffers(plan, out, running);
  return out;
}

Result<std::vector<op::Layout>> plan::contiguous_inputs(const Plan& plan,
                                                        std::span<const std::int64_t> sizes) {
  std::vector<op::Layout> out;
  const KnownSizes known{plan.dims, sizes};
  for (const ValueId input : plan.inputs) {
    const op::ValueType& type = plan.values[input].type;
    op::Extents shape;
    for (const op::Dim& dim : type.shape) shape.push_back(TESSERA_TRY(known.of(dim)));
    if (!checked_product(shape))
      return Error(ErrorCode::limit, cat("an input of type ", type, " and shape [", join(shape, ", "),
                                         "] has too many elements"));
    out.push_back(op::contiguous(shape));
  }
  return out;
}

std::string plan::to_text(const Plan& plan, const Binding& binding) {
  std::string out;
  for (std::size_t d = 0; d < binding.sizes.size(); ++d)
    out += cat(d == 0 ? "for " : ", ", printable(plan.dims[d]->name), " = ", binding.sizes[d],
               d + 1 == binding.sizes.size() ? "\n" : "");
  const bool has_places = !binding.memory.offsets.empty();
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i) {
    const ValueId value = binding.temporaries[i];
    const LiveRange& range = binding.ranges[i];
    out += cat("  %", value, " ", plan.steps[plan.values[value].index].name(), ": ", range.bytes,
               " bytes, steps ", range.first, " to ", range.last(),
               has_places ? cat(", at ", binding.memory.offsets[i]) : "", "\n");
  }
  if (binding.temporaries.empty()) return cat(out, "  no value of the plan's own\n");
  if (has_places)
    out += cat("  ", binding.memory.bytes, " bytes, bound ", binding.memory.lower_bound, ", without reuse ",
               binding.memory.without_reuse, "\n");
  return out;
}
