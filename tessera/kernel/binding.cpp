#include "tessera/kernel/binding.h"

#include <optional>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

using op::Extents;
using op::Layout;

/// "input 2", "output 0"
std::string name_of(const Kernel& kernel, std::uint32_t argument) {
  return argument < kernel.input_count ? cat("input ", argument)
                                       : cat("output ", argument - kernel.input_count);
}

/// The layout in another shape, if no element has to move. Groups of old axes are matched with groups of new
/// ones.
std::optional<Layout> reshaped(const Layout& from, const Extents& shape) {
  if (from.is_contiguous()) {
    Layout out = op::contiguous(shape);
    out.offset = from.offset;
    return out;
  }
  Layout out{shape, Extents(shape.size(), 0), from.offset};
  std::size_t old_at = from.rank();
  std::int64_t size = 1, stride = 0, inner = 1;  // of the group of old axes that is being split
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    while (inner == size) {
      if (old_at == 0) return std::nullopt;
      --old_at;
      if (from.shape[old_at] == 1) continue;
      size = from.shape[old_at];
      stride = from.strides[old_at];
      inner = 1;
    }
    // Old axes that lie in one line make a longer one.
    while (inner * shape[i] > size) {
      if (old_at == 0 || from.strides[old_at - 1] != stride * size) return std::nullopt;
      size *= from.shape[--old_at];
    }
    if (size % (inner * shape[i]) != 0) return std::nullopt;
    out.strides[i] = stride * inner;
    inner *= shape[i];
  }
  return out;
}

class Binder {
 public:
  Binder(const Kernel& kernel, std::span<const op::Array> inputs, std::span<const op::Array> outputs,
         Binding& out)
      : kernel_(kernel), inputs_(inputs), outputs_(outputs), out_(out) {}

  Result<void> bind() {
    if (inputs_.size() != kernel_.input_count || outputs_.size() != kernel_.output_count)
      return Error(ErrorCode::invalid_argument,
                   cat("the kernel has ", kernel_.input_count, " inputs and ", kernel_.output_count,
                       " outputs, got ", inputs_.size(), " and ", outputs_.size()));
    out_.extents = SmallVector<std::int64_t, 8>(kernel_.axis_count(), -1);
    for (std::size_t i = 0; i < kernel_.axis_count(); ++i)
      if (kernel_.fixed_sizes[i] >= 0) out_.extents[i] = kernel_.fixed_sizes[i];
    out_.data.clear();
    layouts_.reserve(kernel_.operands.size());
    for (const Operand& operand : kernel_.operands) TESSERA_TRY(see(operand));
    TESSERA_TRY(check_sizes());
    if (out_.is_empty) return {};
    out_.outer.clear();
    out_.reduced.clear();
    collect_strides();
    join_axes();
    return {};
  }

 private:
  const op::Array& array(std::uint32_t argument) const {
    return argument < kernel_.input_count ? inputs_[argument] : outputs_[argument - kernel_.input_count];
  }

  /// The layout of the operand's array as the kernel sees it, and the sizes that follow from it.
  Result<void> see(const Operand& operand) {
    const op::Array& array = this->array(operand.argument);
    if (array.dtype != operand.dtype)
      return Error(ErrorCode::invalid_argument,
                   cat(name_of(kernel_, operand.argument), " is ", ir::to_string(array.dtype), ", expected ",
                       ir::to_string(operand.dtype)));
    layouts_.push_back(operand.is_reshaped ? TESSERA_TRY(see_as(operand, array.layout)) : array.layout);
    const Layout& layout = layouts_.back();
    if (layout.rank() != operand.starts.size())
      return Error(ErrorCode::shape, cat(name_of(kernel_, operand.argument), " has rank ", layout.rank(),
                                         ", expected ", operand.starts.size()));
    for (const Term& term : operand.terms) {
      if (!operand.starts[term.array_axis].whole) continue;
      std::int64_t& size = out_.extents[term.axis];
      if (size < 0) size = layout.shape[term.array_axis];
    }
    return {};
  }

  Result<Layout> see_as(const Operand& operand, const Layout& layout) const {
    Extents shape(operand.seen_as.begin(), operand.seen_as.end());
    const std::int64_t elements = op::element_count(layout.shape);
    std::int64_t known = 1;
    for (std::int64_t size : shape)
      if (size >= 0) known *= size;
    for (std::int64_t& size : shape)
      if (size < 0) size = known == 0 ? 0 : elements / known;
    const auto count = checked_product(shape);
    if (!count || *count != elements)
      return Error(ErrorCode::shape,
                   cat(name_of(kernel_, operand.argument), " of shape [", join(layout.shape, ", "),
                       "] cannot be seen as [", join(operand.seen_as, ", "), "]"));
    const auto out = reshaped(layout, shape);
    if (!out)
      return Error(
          ErrorCode::unsupported,
          cat(name_of(kernel_, operand.argument), " of shape [", join(layout.shape, ", "), "] and strides [",
              join(layout.strides, ", "), "] cannot be seen as [", join(shape, ", "), "] without a copy"));
    return *out;
  }

  Result<void> check_sizes() {
    bool any_outer = true, any_reduced = true;
    for (std::size_t i = 0; i < kernel_.axis_count(); ++i) {
      TESSERA_CHECK(out_.extents[i] >= 0, "an axis without a size");
      if (out_.extents[i] == 0) (i < kernel_.outer_axes ? any_outer : any_reduced) = false;
    }
    bool stores_rows = false;
    for (const Store& store : kernel_.stores) stores_rows = stores_rows || !has_reduced_axis(store);
    out_.is_empty = !any_outer || (!any_reduced && !stores_rows);
    for (std::size_t i = 0; i < layouts_.size(); ++i) TESSERA_TRY(check_operand(i));
    if (!out_.is_empty && !any_reduced)
      for (const Instruction& instruction : kernel_.body)
        if (instruction.kind == InstructionKind::reduction && instruction.bits != 0)
          return Error(ErrorCode::shape,
                       cat(ir::to_string(instruction.opcode), ": reducing no elements has no value"));
    return {};
  }

  [[nodiscard]] bool has_reduced_axis(const Store& store) const {
    if (!kernel_.reduces()) return true;
    for (const Term& term : kernel_.operands[store.operand].terms)
      if (term.axis >= kernel_.outer_axes) return true;
    return false;
  }

  /// Every index lies within the array, and axes that must be walked over as a whole are.
  Result<void> check_operand(std::size_t number) {
    const Operand& operand = kernel_.operands[number];
    const Layout& layout = layouts_[number];
    for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
      const Start& start = operand.starts[axis];
      std::int64_t low = start.from_end ? layout.shape[axis] - start.value : start.value, high = low;
      std::int64_t expected = 1;
      bool any = true;
      for (const Term& term : operand.terms) {
        if (term.array_axis != axis) continue;
        const std::int64_t size = out_.extents[term.axis];
        expected = size;
        any = any && size > 0;
        const auto reach = checked_mul(term.step, size - 1);
        if (!reach) return wrong_shape(operand, axis, layout);
        (*reach < 0 ? low : high) += *reach;
      }
      const bool inside = !any || out_.is_empty || (low >= 0 && high < layout.shape[axis]);
      if (!inside || (start.whole && layout.shape[axis] != expected))
        return wrong_shape(operand, axis, layout);
    }
    return {};
  }

  Error wrong_shape(const Operand& operand, std::size_t axis, const Layout& layout) const {
    return Error(ErrorCode::shape,
                 cat(name_of(kernel_, operand.argument), " of shape [", join(layout.shape, ", "),
                     "]: the size of axis ", axis, " does not fit the other arrays"));
  }

  void collect_strides() {
    const std::size_t axes = kernel_.axis_count();
    all_strides_ = SmallVector<std::int64_t, 32>(layouts_.size() * axes, 0);
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const Operand& operand = kernel_.operands[i];
      std::int64_t offset = layouts_[i].offset;
      for (std::size_t a = 0; a < layouts_[i].rank(); ++a) {
        const Start& start = operand.starts[a];
        offset +=
            (start.from_end ? layouts_[i].shape[a] - start.value : start.value) * layouts_[i].strides[a];
      }
      for (const Term& term : operand.terms)
        all_strides_[i * axes + term.axis] += term.step * layouts_[i].strides[term.array_axis];
      out_.data.push_back(array(operand.argument).at(offset));
    }
  }

  /// Whether going along `axis` and then one further along `before` is going on.
  [[nodiscard]] bool continues(std::uint32_t before, std::uint32_t axis, std::int64_t size) const {
    const std::size_t axes = kernel_.axis_count();
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      if (all_strides_[i * axes + before] != all_strides_[i * axes + axis] * size) return false;
    return (kernel_.placed_axes >> before & 1) == 0 && (kernel_.placed_axes >> axis & 1) == 0;
  }

  void join_axes() {
    const std::size_t axes = kernel_.axis_count();
    for (std::uint32_t i = 0; i < axes; ++i) {
      if (out_.extents[i] == 1) continue;
      auto& list = i < kernel_.outer_axes ? out_.outer : out_.reduced;
      if (!list.empty() && continues(list.back().number, i, out_.extents[i]))
        list.back() = {list.back().size * out_.extents[i], i};
      else
        list.push_back({out_.extents[i], i});
    }
    out_.strides.clear();
    for (std::size_t k = 0; k < layouts_.size(); ++k) {
      for (const Binding::Axis& axis : out_.outer)
        out_.strides.push_back(all_strides_[k * axes + axis.number]);
      for (const Binding::Axis& axis : out_.reduced)
        out_.strides.push_back(all_strides_[k * axes + axis.number]);
    }
  }

  const Kernel& kernel_;
  std::span<const op::Array> inputs_, outputs_;
  Binding& out_;
  SmallVector<Layout, 8> layouts_;
  SmallVector<std::int64_t, 32> all_strides_;
};

std::int64_t points(std::span<const Binding::Axis> axes) {
  std::int64_t out = 1;
  for (const Binding::Axis& axis : axes) out *= axis.size;
  return out;
}

}  // namespace

std::int64_t Binding::outer_points() const { return points(outer); }
std::int64_t Binding::reduced_points() const { return points(reduced); }

Result<void> tessera::kernel::bind(const Kernel& kernel, std::span<const op::Array> inputs,
                                   std::span<const op::Array> outputs, Binding& out) {
  return Binder(kernel, inputs, outputs, out).bind();
}
