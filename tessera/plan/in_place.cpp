#include "tessera/plan/in_place.h"

#include <algorithm>

#include "tessera/kernel/passes.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

/// The maps from points to elements are the same.
bool same_map(const kernel::Operand& a, const kernel::Operand& b) {
  return a.starts == b.starts && a.terms == b.terms && a.seen_as == b.seen_as &&
         a.is_reshaped == b.is_reshaped;
}

/// Whether the kernel reads the input, at each point, only where it writes the output, and before.
bool is_pointwise(const kernel::Kernel& kernel, std::uint32_t input, std::uint32_t output) {
  const kernel::Operand* written = nullptr;
  for (std::uint32_t i = 0; i < kernel.stores.size(); ++i) {
    const kernel::Operand& operand = kernel.operands[kernel.stores[i].operand];
    if (operand.argument != kernel.input_count + output) continue;
    if (written != nullptr) return false;
    written = &operand;
    if (!kernel.reduces()) continue;
    // Passes before the last one read the whole row.
    const auto passes = kernel::find_passes(kernel);
    const auto& last = passes.passes.back().stores;
    if (std::find(last.begin(), last.end(), i) == last.end()) return false;
  }
  return written != nullptr &&
         std::all_of(kernel.operands.begin(), kernel.operands.end(), [&](const kernel::Operand& operand) {
           return operand.argument != input || same_map(operand, *written);
         });
}

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan), reads_(plan.values.size()) {
    for (const Step& step : plan.steps)
      for (const ValueId input : step.inputs) ++reads_[input];
    for (const ValueId output : plan.outputs) ++reads_[output];
  }

  [[nodiscard]] std::vector<InPlace> of(const Step& step) const {
    std::vector<InPlace> out;
    if (step.kind != StepKind::kernel) return out;
    for (std::uint32_t r = 0; r < step.results.size(); ++r)
      for (std::uint32_t i = 0; i < step.inputs.size(); ++i) {
        const bool is_taken =
            std::any_of(out.begin(), out.end(), [&](const InPlace& pair) { return pair.input == i; });
        if (is_taken || !is_free(step.inputs[i]) || !same_size(step.inputs[i], step.results[r])) continue;
        if (!is_pointwise(*step.kernel, i, r)) continue;
        out.push_back({r, i});
        break;
      }
    return out;
  }

 private:
  /// Computed into memory of its own, and read once.
  [[nodiscard]] bool is_free(ValueId v) const {
    const Value& value = plan_.values[v];
    if (value.kind != ValueKind::computed || reads_[v] != 1) return false;
    const Step& producer = plan_.steps[value.index];
    return producer.kind != StepKind::call || producer.card->view == nullptr;
  }
  [[nodiscard]] bool same_size(ValueId a, ValueId b) const {
    const op::ValueType &x = plan_.values[a].type, &y = plan_.values[b].type;
    return ir::size_of(x.dtype) == ir::size_of(y.dtype) && x.shape == y.shape;
  }

  const Plan& plan_;
  std::vector<std::uint32_t> reads_;
};

}  // namespace

std::vector<std::vector<InPlace>> plan::find_in_place(const Plan& plan) {
  const Finder finder(plan);
  std::vector<std::vector<InPlace>> out;
  out.reserve(plan.steps.size());
  for (const Step& step : plan.steps) out.push_back(finder.of(step));
  return out;
}

bool plan::can_replace(const Plan& plan, ValueId input, ValueId output) {
  if (input == output) return true;
  const Value& value = plan.values[output];
  if (value.kind != ValueKind::computed || plan.steps[value.index].kind != StepKind::kernel) return false;
  const Step& step = plan.steps[value.index];
  const auto position = [](const std::vector<ValueId>& list, ValueId of) {
    return static_cast<std::uint32_t>(std::find(list.begin(), list.end(), of) - list.begin());
  };
  const std::uint32_t read = position(step.inputs, input), written = position(step.results, output);
  if (read == step.inputs.size()) return false;
  const auto takes_other = [&](const InPlace& pair) { return pair.result == written; };
  if (std::any_of(step.in_place.begin(), step.in_place.end(), takes_other)) return false;
  std::ptrdiff_t reads = std::count(plan.outputs.begin(), plan.outputs.end(), input);
  for (const Step& other : plan.steps) reads += std::count(other.inputs.begin(), other.inputs.end(), input);
  return reads == 1 && std::count(plan.outputs.begin(), plan.outputs.end(), output) == 1 &&
         is_pointwise(*step.kernel, read, written);
}
