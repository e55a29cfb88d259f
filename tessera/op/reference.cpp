#include "tessera/op/reference.h"

#include <array>

#include "tessera/base/run_meter.h"
#include "tessera/op/body.h"

using namespace tessera;
using namespace tessera::op;

namespace {

constexpr std::size_t block_elements = 256;

/// Where the elements of an array lie along the innermost axis of an iteration over `shape`.
struct Rows {
  std::int64_t length = 1;
  std::int64_t count = 1;  ///< rows in all
};

Rows rows_of(const Extents& shape) {
  Rows out;
  if (!shape.empty()) out.length = shape.back();
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) out.count *= shape[i];
  return out;
}

/// The offset of row `index` in a layout of the iteration's shape.
std::int64_t row_offset(const Layout& layout, std::int64_t index) {
  std::int64_t offset = layout.offset;
  for (std::size_t axis = layout.rank(); axis-- > 1;) {
    const std::size_t a = axis - 1;
    offset += index % layout.shape[a] * layout.strides[a];
    index /= layout.shape[a];
  }
  return offset;
}

std::int64_t inner_stride(const Layout& layout) { return layout.rank() == 0 ? 0 : layout.strides.back(); }

/// Makes one axis of neighbours that all layouts, which have one shape, walk over as one: rows become longer.
void join_axes(std::span<Layout> layouts) {
  for (std::size_t a = layouts[0].rank(); a-- > 1;) {
    const bool are_one = std::all_of(layouts.begin(), layouts.end(), [a](const Layout& layout) {
      return layout.strides[a - 1] == layout.strides[a] * layout.shape[a];
    });
    if (!are_one) continue;
    for (Layout& layout : layouts) {
      layout.shape[a - 1] *= layout.shape[a];
      layout.strides[a - 1] = layout.strides[a];
      layout.shape.erase(layout.shape.begin() + static_cast<std::ptrdiff_t>(a));
      layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(a));
    }
  }
}

template <class W>
void pointwise_rows(const PointwiseBody& body, std::span<const Array> inputs, const Array& result) {
  const std::size_t arity = inputs.size();
  std::vector<Layout> layouts;
  std::vector<Loader<W>> loaders;
  for (const Array& input : inputs) {
    layouts.push_back(broadcast_layout(input.layout, result.shape()));
    loaders.push_back(loader<W>(input.dtype));
  }
  layouts.push_back(result.layout);
  join_axes(layouts);
  const Layout& written = layouts.back();
  std::vector<std::array<W, block_elements>> buffers(arity);
  std::vector<const W*> in;
  for (const auto& buffer : buffers) in.push_back(buffer.data());
  std::array<W, block_elements> out;
  std::array<std::uint8_t, block_elements> flags;
  std::array<SignedWide, block_elements> wide_flags;
  const Rows rows = rows_of(written.shape);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t begin = 0; begin < rows.length; begin += block_elements) {
      RunMeter::check_or_throw();
      const auto count =
          static_cast<std::size_t>(std::min<std::int64_t>(block_elements, rows.length - begin));
      for (std::size_t k = 0; k < arity; ++k) {
        const std::int64_t stride = inner_stride(layouts[k]);
        loaders[k](inputs[k].data, row_offset(layouts[k], row) + begin * stride, stride, count,
                   buffers[k].data());
      }
      const std::int64_t stride = inner_stride(written);
      const std::int64_t offset = row_offset(written, row) + begin * stride;
      if (body.boolean) {
        body.template block<W>()(in.data(), count, flags.data());
        for (std::size_t i = 0; i < count; ++i) wide_flags[i] = flags[i];
        storer<SignedWide>(result.dtype)(result.data, offset, stride, count, wide_flags.data());
      } else {
        body.template block<W>()(in.data(), count, out.data());
        storer<W>(result.dtype)(result.data, offset, stride, count, out.data());
      }
    }
  }
}

/// The dtype that decides what an element-wise call computes in: that of the first input of type T.
Dtype computing_dtype(const CallInfo& call) {
  for (std::size_t i = 0; i < call.inputs().size() && i < call.card().inputs.size(); ++i)
    if (call.card().inputs[i].type == "T") return call.input(i).dtype;
  return call.input(0).dtype;
}

/// The layout of `input` with the reduced axes last, and how many of those there are.
struct ReducedView {
  Layout kept;
  Layout reduced;
};

ReducedView split_axes(const Layout& layout, std::span<const std::size_t> axes) {
  ReducedView out;
  for (std::size_t i = 0; i < layout.rank(); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    Layout& to = is_reduced ? out.reduced : out.kept;
    to.shape.push_back(layout.shape[i]);
    to.strides.push_back(layout.strides[i]);
  }
  out.kept.offset = layout.offset;
  return out;
}

template <class W>
void reduce_rows(const ReductionBody::On<W>& on, const Array& input, const ReducedView& view,
                 const Array& result) {
  const auto load = loader<W>(input.dtype);
  const auto store = storer<W>(result.dtype);
  const W count = W(element_count(view.reduced.shape));
  const Rows rows = rows_of(view.reduced.shape);
  const std::int64_t stride = inner_stride(view.reduced);
  std::array<W, block_elements> buffer;
  const Layout flat = contiguous(view.kept.shape);
  for_each_offset<2>(view.kept.shape, {&view.kept, &flat}, [&](const auto& at) {
    W accumulated = on.init();
    for (std::int64_t row = 0; row < (rows.length == 0 ? 0 : rows.count); ++row)
      for (std::int64_t begin = 0; begin < rows.length; begin += block_elements) {
        RunMeter::check_or_throw();
        const auto part =
            static_cast<std::size_t>(std::min<std::int64_t>(block_elements, rows.length - begin));
        load(input.data, at[0] + row_offset(view.reduced, row) + begin * stride, stride, part, buffer.data());
        accumulated = on.accumulate(accumulated, buffer.data(), part);
      }
    const W value = on.finish(accumulated, count);
    store(result.data, result.layout.offset + at[1], 1, 1, &value);
  });
}

}  // namespace

namespace {

Result<void> run_kernel(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const Card& card = call.card();
  if (card.reference != nullptr) return card.reference(call, inputs, results);
  if (card.pointwise != nullptr) return run_pointwise(call, *card.pointwise, inputs, results[0]);
  if (card.reduction != nullptr) return run_reduction(call, *card.reduction, inputs[0], results[0]);
  if (card.view != nullptr) {
    const auto layout = card.view(call, inputs[0].layout);
    if (layout) {
      copy_elements({inputs[0].dtype, *layout, inputs[0].data}, results[0]);
      return {};
    }
  }
  return call.error("has no reference kernel");
}

}  // namespace

Result<void> tessera::op::run_reference(const CallInfo& call, std::span<const Array> inputs,
                                        std::span<const Array> results) {
  if (RunMeter::current() == nullptr) return run_kernel(call, inputs, results);
  try {
    return run_kernel(call, inputs, results);
  } catch (const Exception& late) {  // loops of kernels have no other way out
    return late.error();
  }
}

Result<void> tessera::op::run_pointwise(const CallInfo& call, const PointwiseBody& body,
                                        std::span<const Array> inputs, const Array& result) {
  if (result.size() == 0) return {};
  visit_wide(computing_dtype(call), [&]<class W>(W*) {
    TESSERA_CHECK(body.template block<W>() != nullptr,
                  cat("op '", call.card().name, "' has no formula for this dtype"));
    pointwise_rows<W>(body, inputs, result);
  });
  return {};
}

Result<void> tessera::op::run_reduction(const CallInfo& call, const ReductionBody& body, const Array& input,
                                        const Array& result) {
  const auto axes = TESSERA_TRY(call.axes("axes", input.rank()));
  const ReducedView view = split_axes(input.layout, axes);
  if (body.needs_elements && element_count(view.reduced.shape) == 0 && result.size() > 0)
    return call.error("reducing no elements has no value: 'x' has shape [", join(input.shape(), ", "), "]");
  visit_wide(input.dtype, [&]<class W>(W*) { reduce_rows<W>(body.template on<W>(), input, view, result); });
  return {};
}

Result<std::vector<HostTensor>> tessera::op::run_reference(const Card& card, std::span<const Array> inputs,
                                                           const Attributes& attributes) {
  ValueTypes types;
  for (const Array& input : inputs)
    types.push_back(
        {input.dtype, ir::shape_of(std::vector<std::int64_t>(input.shape().begin(), input.shape().end()))});
  const ValueTypes inferred = TESSERA_TRY(infer(card, types, attributes));
  std::vector<HostTensor> out;
  std::vector<Array> results;
  for (const ValueType& type : inferred) {
    const auto extents = ir::constant_shape(type.shape);
    TESSERA_CHECK(extents.has_value(), "the reference was asked for a symbolic shape");
    out.push_back(TESSERA_TRY(HostTensor::allocate(type.dtype, *extents)));
    results.push_back(out.back().array());
  }
  const CallInfo call(card, types, attributes);
  TESSERA_TRY(run_reference(call, inputs, results));
  return out;
}
