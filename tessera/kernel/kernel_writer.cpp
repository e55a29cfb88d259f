#include "tessera/kernel/kernel_writer.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

template <class T>
bool contains(const T& list, std::uint32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

template <class T>
bool has_duplicates(T list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

}  // namespace

KernelWriter::AxisIds KernelWriter::roots(std::span<const AxisId> axes) {
  AxisIds out;
  for (AxisId axis : axes)
    if (axis != RegionBuilder::no_axis) out.push_back(draft_.root(axis));
  return out;
}

std::optional<std::uint32_t> KernelWriter::number_of(AxisId root) const {
  const auto at = std::find(order_.begin(), order_.end(), root);
  if (at == order_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - order_.begin());
}

bool KernelWriter::is_reduced(AxisId root) const { return contains(reduced_, root); }

Result<Kernel> KernelWriter::write(std::span<const op::Value> results) {
  TESSERA_TRY(collect_outputs(results));
  find_live();
  TESSERA_TRY(check_values());
  TESSERA_TRY(find_reduced_axes());
  TESSERA_TRY(order_axes());
  kernel_.input_count = draft_.input_count_;
  kernel_.output_count = static_cast<std::uint32_t>(outputs_.size());
  TESSERA_TRY(write_loads());
  TESSERA_TRY(write_body());
  write_stores();
  TESSERA_TRY(write_sizes());
  kernel_.body = body_.body();
  kernel_.parameters = draft_.body_.parameters();
  kernel_.slots = draft_.body_.slots();
  return std::move(kernel_);
}

Result<void> KernelWriter::collect_outputs(std::span<const op::Value> results) {
  if (results.empty()) return not_fusible("a region without results");
  for (op::Value result : results) {
    const auto base = draft_.entries_[result.id].reshaped;
    const op::Value value = base ? op::Value{&draft_, *base} : result;
    Output output{TESSERA_TRY(draft_.element(value)), {}, value.type(), base.has_value()};
    if (output.is_reshaped) {
      std::size_t symbols = 0;
      for (const op::Dim& dim : output.type.shape) symbols += dim.is_constant() ? 0 : 1;
      if (symbols > 1) return not_fusible(cat("a result is a reshaped ", output.type));
    }
    outputs_.push_back(std::move(output));
    outputs_.back().axes = draft_.entries_[value.id].axes;  // not roots yet: later results may join more
  }
  for (Output& output : outputs_) output.axes = roots(output.axes);
  return {};
}

void KernelWriter::find_live() {
  const auto& body = draft_.body_.body();
  live_.assign(body.size(), false);
  for (const Output& output : outputs_) live_[output.value] = true;
  for (std::size_t i = body.size(); i-- > 0;)
    if (live_[i])
      for (std::size_t k = 0; k < operand_count(body[i]); ++k) live_[body[i].operands[k]] = true;
}

/// An axis that stands twice in one value would be its diagonal: the value was combined with a view of itself
/// that moves elements, and would have to be computed at two places.
Result<void> KernelWriter::check_values() {
  for (const auto& entry : draft_.entries_)
    if (has_duplicates(roots(entry.axes)))
      return not_fusible("a value is combined with itself in another order of its axes");
  return {};
}

Result<void> KernelWriter::find_reduced_axes() {
  const auto& body = draft_.body_.body();
  bool is_first = true;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!live_[i] || body[i].kind != InstructionKind::reduction) continue;
    const AxisIds axes = roots(draft_.reductions_[body[i].index]);
    if (is_first) reduced_ = axes;
    is_first = false;
    const bool same = axes.size() == reduced_.size() &&
                      std::all_of(axes.begin(), axes.end(), [&](AxisId a) { return is_reduced(a); });
    if (!same) return not_fusible("reductions over different axes");
  }
  return {};
}

/// Outer axes in the order of the first result, then the reduced ones: in the order of a result that has
/// them, so that it is written from front to back.
Result<void> KernelWriter::order_axes() {
  const Output* widest = &outputs_[0];
  for (const Output& output : outputs_)
    if (output.axes.size() > widest->axes.size()) widest = &output;
  for (AxisId axis : widest->axes)
    if (!is_reduced(axis)) order_.push_back(axis);
  kernel_.outer_axes = static_cast<std::uint32_t>(order_.size());
  for (AxisId axis : widest->axes)
    if (is_reduced(axis)) order_.push_back(axis);
  for (AxisId axis : reduced_)
    if (!contains(order_, axis)) order_.push_back(axis);
  for (const Output& output : outputs_) TESSERA_TRY(check_output(output));
  return {};
}

Result<void> KernelWriter::check_output(const Output& output) const {
  std::size_t outer = 0, reduced = 0;
  for (AxisId axis : output.axes) {
    if (!contains(order_, axis)) return not_fusible("results over different axes");
    ++(is_reduced(axis) ? reduced : outer);
  }
  if (outer != kernel_.outer_axes) return not_fusible("results over different axes");
  if (reduced != 0 && reduced != reduced_.size())
    return not_fusible("a result over some of the reduced axes");
  return {};
}

std::uint32_t KernelWriter::add_operand(Operand operand) {
  const auto at = std::find(kernel_.operands.begin(), kernel_.operands.end(), operand);
  if (at != kernel_.operands.end()) return static_cast<std::uint32_t>(at - kernel_.operands.begin());
  kernel_.operands.push_back(std::move(operand));
  return static_cast<std::uint32_t>(kernel_.operands.size() - 1);
}

Result<void> KernelWriter::write_loads() {
  const auto& body = draft_.body_.body();
  load_of_.assign(draft_.loads_.size(), 0);
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!live_[i] || body[i].kind != InstructionKind::load) continue;
    const RegionBuilder::Load& load = draft_.loads_[body[i].index];
    Operand operand{load.dtype, load.view.argument, load.view.starts,
                    {},         load.view.seen_as,  load.view.is_reshaped};
    for (std::size_t j = 0; j < load.axes.size(); ++j) {
      if (load.axes[j] == RegionBuilder::no_axis) continue;
      const auto axis = number_of(draft_.root(load.axes[j]));
      if (!axis) return not_fusible("an operand over an axis that no result has");
      for (const InputView::Step& step : load.view.steps[j])
        operand.terms.push_back({*axis, step.array_axis, step.step});
    }
    load_of_[body[i].index] = add_operand(std::move(operand));
  }
  return {};
}

void KernelWriter::write_stores() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    Operand operand{output.type.dtype, kernel_.input_count + static_cast<std::uint32_t>(i), {}, {}, {},
                    output.is_reshaped};
    std::size_t axis = 0;
    for (std::size_t j = 0; j < output.type.rank(); ++j) {
      const op::Dim& dim = output.type.shape[j];
      operand.starts.emplace_back();
      if (output.is_reshaped) operand.seen_as.push_back(dim.is_constant() ? dim.value() : -1);
      if (dim == op::Dim(1)) continue;
      operand.terms.push_back({*number_of(output.axes[axis++]), static_cast<std::uint32_t>(j), 1});
    }
    const std::uint32_t number = add_operand(std::move(operand));
    kernel_.stores.push_back({number, new_ids_[output.value]});
  }
}

/// An axis has its size from an array that is walked over as a whole, or it is a number.
Result<void> KernelWriter::write_sizes() {
  kernel_.fixed_sizes.assign(order_.size(), -2);
  for (const Operand& operand : kernel_.operands)
    for (const Term& term : operand.terms)
      if (operand.starts[term.array_axis].whole) kernel_.fixed_sizes[term.axis] = -1;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (kernel_.fixed_sizes[i] == -1) continue;
    const op::Dim& size = draft_.axes_[order_[i]].size;
    if (!size.is_constant())
      return not_fusible(cat("the size ", size, " does not follow from the shapes of the arrays"));
    kernel_.fixed_sizes[i] = size.value();
  }
  return {};
}

Result<Instruction> KernelWriter::extent_instruction(AxisId axis) {
  Instruction out;
  out.dtype = Dtype::i64;
  const op::Dim& size = draft_.axes_[draft_.root(axis)].size;
  auto number = number_of(draft_.root(axis));
  for (std::size_t i = 0; !number && i < order_.size(); ++i)
    if (draft_.axes_[order_[i]].size == size) number = static_cast<std::uint32_t>(i);
  if (number) {
    out.kind = InstructionKind::extent;
    out.index = *number;
    return out;
  }
  if (!size.is_constant())
    return not_fusible(cat("the size ", size, " is not that of an axis of the region"));
  out.bits = static_cast<std::uint64_t>(size.value());
  return out;
}

Result<Instruction> KernelWriter::rewritten(const Instruction& instruction) {
  Instruction out = instruction;
  for (std::size_t k = 0; k < operand_count(instruction); ++k)
    out.operands[k] = new_ids_[instruction.operands[k]];
  switch (instruction.kind) {
    case InstructionKind::load:
      out.index = load_of_[instruction.index];
      break;
    case InstructionKind::reduction:
      out.index = 0;
      break;
    case InstructionKind::extent:
      return extent_instruction(instruction.index);
    case InstructionKind::place: {
      const auto number = number_of(draft_.root(instruction.index));
      if (!number) return not_fusible("the index along an axis that no result has");
      out.index = *number;
      kernel_.placed_axes |= std::uint32_t{1} << *number;
      break;
    }
    default:
      break;
  }
  return out;
}

Result<void> KernelWriter::write_body() {
  const auto& body = draft_.body_.body();
  new_ids_.assign(body.size(), no_value);
  for (std::size_t i = 0; i < body.size(); ++i)
    if (live_[i]) new_ids_[i] = body_.add(TESSERA_TRY(rewritten(body[i])));
  return {};
}

Result<Kernel> RegionBuilder::finish(std::span<const op::Value> results) {
  return KernelWriter(*this).write(results);
}
