#include "tessera/plan/binding.h"

#include <algorithm>
#include <map>

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

  Result<Binding> run(std::span<const op::Layout> inputs, Running running, const ChooseSpans& spans) {
    TESSERA_TRY(given_values(inputs));
    for (StepId s = 0; s < plan_.steps.size(); ++s) TESSERA_TRY(step(s));
    place_outputs();
    if (spans && running == Running::one_by_one) note_spans(spans(out_));
    place_temporaries(running);
    for (ValueId v = 0; v < plan_.values.size(); ++v) follow_root(v);
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

  void note_spans(std::span<const StepSpan> spans) {
    for (const StepSpan& span : spans)
      for (StepId s = span.first; s <= span.last; ++s) span_of_.insert_or_assign(s, span);
  }

  /// The steps that are under way when one is.
  [[nodiscard]] StepSpan together_with(StepId s) const {
    const auto at = span_of_.find(s);
    return at == span_of_.end() ? StepSpan{s, s} : at->second;
  }

  /// A value lives until the last step that reads it or a view of it.
  void place_temporaries(Running running) {
    std::vector<std::uint32_t> life_of(plan_.values.size(), none);
    std::vector<LiveRange>& ranges = out_.ranges;
    for (StepId s = 0; s < plan_.steps.size(); ++s) {
      for (const ValueId input : plan_.steps[s].inputs)
        if (const std::uint32_t life = life_of[root_[input]]; life != none && !out_.is_view[s])
          ranges[life].reads.push_back(together_with(s).last);
      for (const ValueId result : plan_.steps[s].results) {
        if (root_[result] != result || is_output_root_[result]) continue;
        life_of[result] = static_cast<std::uint32_t>(ranges.size());
        ranges.push_back({.first = together_with(s).first,
                          .reads = {},
                          .bytes = static_cast<std::uint64_t>(bytes_of(result))});
        out_.temporaries.push_back(result);
      }
    }
    out_.memory = running == Running::one_by_one
                      ? lay_out(ranges, plan_.steps.size())
                      : lay_out(ranges, plan_.steps.size(), StepOrder(dependencies(plan_)));
    for (std::size_t i = 0; i < out_.temporaries.size(); ++i) {
      out_.places[out_.temporaries[i]].where = Where::scratch;
      out_.places[out_.temporaries[i]].byte = static_cast<std::int64_t>(out_.memory.offsets[i]);
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
  std::map<StepId, StepSpan> span_of_;  ///< of steps that are in one
};

}  // namespace

Result<Binding> plan::bind(const Plan& plan, std::span<const std::int64_t> sizes,
                           std::span<const op::Layout> inputs, Running running, const ChooseSpans& spans) {
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
  return Binder(plan, sizes).run(inputs, running, spans);
}
