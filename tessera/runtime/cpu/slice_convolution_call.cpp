// Convolutions over three axes and of 16-bit floats, by convolutions of f32 over two axes.
//
// What a window sees along the first of three axes are channels: each slice of the result is a convolution of
// an image whose channels are the slices of the source that it looks at, with zeros for padding. So volumes
// have the methods of images, Winograd's among them. Numbers are made wider when slices are gathered, and are
// rounded once, when the result is put in its place.
#include <algorithm>
#include <cstring>

#include "tessera/kernel/block_loops.h"
#include "tessera/runtime/cpu/element_offset.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// With fewer slices threads share out the parts of one.
constexpr std::int64_t least_slices = 4;

/// Reads an array of any strides in row-major order as f32. `shape` is that of the layout.
void widen(const op::Array& from, const op::Layout& layout, float* to) {
  const auto load = kernel::block_loops().load[static_cast<std::size_t>(from.dtype)];
  std::size_t rank = layout.rank();
  std::int64_t count = 1, stride = rank == 0 ? 1 : layout.strides[rank - 1];
  // Axes that go on from each other are one.
  while (rank > 0 && (count == 1 || layout.strides[rank - 1] == stride * count)) {
    if (count == 1) stride = layout.strides[rank - 1];
    count *= layout.shape[--rank];
  }
  op::Layout rows{.offset = layout.offset};
  std::int64_t row_count = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    rows.shape.push_back(layout.shape[axis]);
    rows.strides.push_back(layout.strides[axis]);
    row_count *= layout.shape[axis];
  }
  for (std::int64_t row = 0; row < row_count; ++row, to += count)
    load(from.at(element_offset(rows, row)), stride, to, static_cast<std::size_t>(count));
}

/// Along the axis that becomes channels; of images it is one element.
struct DepthAxis {
  std::int64_t size = 1, window = 1, stride = 1, dilation = 1, padding = 0, positions = 1;
};

/// Filters as f32, packed by the convolution that runs with them.
struct PackedSlices final : Derived {
  std::shared_ptr<const Convolution> wanted;  ///< for filters of finite numbers
  std::shared_ptr<const Convolution> by;
  PackedFilters filters;
  WeightPlace from;

  explicit PackedSlices(const op::Array& array) : from(array) {}
  [[nodiscard]] std::size_t byte_size() const override { return filters.byte_size(); }
};

class SliceConvolutionCall final : public LibraryCall {
 public:
  SliceConvolutionCall(const LibraryForm& form, Libraries& libraries)
      : form_(form), libraries_(libraries), packed_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    set_geometry(inputs, result);
    slices_ = result.size() == 0 ? 0 : result.shape()[0] * depth_.positions;
    is_sliced_ = slices_ >= least_slices;
    spec_.batch = is_sliced_ ? 1 : slices_;
    convolution_ = by_ = TESSERA_TRY(find_convolution(spec_, libraries_));
    const Pair size = spec_.output_size();
    source_numbers_ = static_cast<std::size_t>(spec_.channels * spec_.size[0] * spec_.size[1]);
    result_numbers_ = static_cast<std::size_t>(spec_.filters * size[0] * size[1]);
    if (form_.bias != no_input) bias_.resize(static_cast<std::size_t>(inputs[form_.bias].size()));
    const auto whole = static_cast<std::size_t>(is_sliced_ ? 0 : slices_);
    memory_.resize(whole * (source_numbers_ + result_numbers_));
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    source_ = launch.inputs[form_.left];
    result_ = launch.results[0];
    if (form_.bias != no_input) {
      widen(launch.inputs[form_.bias], launch.inputs[form_.bias].layout, bias_.data());
      operands_.bias = bias_.data();
    }
    TESSERA_TRY(choose_filters(launch.inputs[form_.right], launch.weights));
    if (is_sliced_) return {};
    for (std::int64_t slice = 0; slice < slices_; ++slice) gather(slice, source_of(slice));
    operands_.source = memory_.data();
    operands_.destination = result_of(0);
    return {};
  }

  [[nodiscard]] std::int64_t items() const override { return is_sliced_ ? slices_ : by_->items(); }

  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    if (!is_sliced_) return by_->run(operands_, range, scratch);
    static thread_local kernel::Scratch slices;  // the convolution has the other
    auto* const memory =
        reinterpret_cast<float*>(slices.reserve((source_numbers_ + result_numbers_) * sizeof(float)));
    ConvolutionOperands operands = operands_;
    operands.source = memory;
    operands.destination = memory + source_numbers_;
    for (std::int64_t slice = range.begin; slice < range.end; ++slice) {
      gather(slice, memory);
      TESSERA_TRY(by_->run(operands, {0, by_->items()}, scratch));
      put(slice, operands.destination);
    }
    return {};
  }

  void end() override {
    for (std::int64_t slice = 0; !is_sliced_ && slice < slices_; ++slice) put(slice, result_of(slice));
    packed_.end();
  }
  [[nodiscard]] std::string implementation() const override { return by_->implementation(); }

 private:
  void set_geometry(std::span<const op::Array> inputs, const op::Array& result) {
    const op::CallInfo call(*form_.card, {}, form_.attributes);
    const op::Extents &x = inputs[form_.left].shape(), &w = inputs[form_.right].shape();
    const std::size_t axes = x.size() - 2;
    const auto number = [&](std::string_view name, std::size_t at, std::int64_t otherwise) {
      const auto& numbers = call.integers(name);
      return at < numbers.size() ? numbers[at] : otherwise;
    };
    if (axes == 3)
      depth_ = {x[2],
                w[2],
                number("strides", 0, 1),
                number("dilations", 0, 1),
                number("pads", 0, 0),
                result.shape()[2]};
    channels_ = x[1];
    spec_ = {.channels = x[1] * depth_.window, .filters = w[0], .groups = call.integer("groups")};
    spec_.size = spec_.window = {1, 1};
    spec_.epilogue = form_.epilogue;
    const std::size_t flat = std::min<std::size_t>(axes, 2);
    for (std::size_t i = 0; i < flat; ++i) {
      const std::size_t to = 2 - flat + i, axis = axes - flat + i;
      spec_.size[to] = x[2 + axis];
      spec_.window[to] = w[2 + axis];
      spec_.strides[to] = number("strides", axis, 1);
      spec_.dilations[to] = number("dilations", axis, 1);
      spec_.padding_low[to] = number("pads", axis, 0);
      spec_.padding_high[to] = number("pads", axes + axis, 0);
    }
  }

  [[nodiscard]] float* source_of(std::int64_t slice) {
    return memory_.data() + static_cast<std::size_t>(slice) * source_numbers_;
  }
  [[nodiscard]] float* result_of(std::int64_t slice) {
    return memory_.data() + static_cast<std::size_t>(slices_) * source_numbers_ +
           static_cast<std::size_t>(slice) * result_numbers_;
  }

  /// The image that a slice of the result is computed from: for each channel what the window sees.
  void gather(std::int64_t slice, float* to) const {
    const std::int64_t position = slice % depth_.positions, item = slice / depth_.positions;
    const bool has_depth = source_.layout.rank() == 5;
    const op::Layout& all = source_.layout;
    op::Layout image;
    for (std::size_t axis = has_depth ? 3 : 2; axis < all.rank(); ++axis) {
      image.shape.push_back(all.shape[axis]);
      image.strides.push_back(all.strides[axis]);
    }
    const std::int64_t channel_stride = all.strides[1], depth_stride = has_depth ? all.strides[2] : 0;
    const std::int64_t base = all.offset + item * all.strides[0];
    const std::int64_t numbers = spec_.size[0] * spec_.size[1];
    for (std::int64_t channel = 0; channel < channels_; ++channel)
      for (std::int64_t tap = 0; tap < depth_.window; ++tap, to += numbers) {
        const std::int64_t at = position * depth_.stride - depth_.padding + tap * depth_.dilation;
        if (at < 0 || at >= depth_.size) {
          std::fill_n(to, numbers, 0.0f);
          continue;
        }
        image.offset = base + channel * channel_stride + at * depth_stride;
        widen(source_, image, to);
      }
  }

  /// Rounds a slice of the result, and puts it where it belongs.
  void put(std::int64_t slice, float* from) const {
    const std::int64_t position = slice % depth_.positions, item = slice / depth_.positions;
    const auto numbers =
        static_cast<std::int64_t>(result_numbers_) / std::max<std::int64_t>(spec_.filters, 1);
    const kernel::LoopTable& loops = kernel::block_loops();
    const auto dtype = static_cast<std::size_t>(result_.dtype);
    if (result_.dtype != op::Dtype::f32)
      loops.cast[kernel::wide_index(op::Dtype::f32)][dtype](from, nullptr, nullptr, from, result_numbers_);
    for (std::int64_t filter = 0; filter < spec_.filters; ++filter, from += numbers) {
      const std::int64_t at = ((item * spec_.filters + filter) * depth_.positions + position) * numbers;
      loops.store[dtype](from, result_.at(result_.layout.offset + at), 1, static_cast<std::size_t>(numbers));
    }
  }

  Result<void> choose_filters(const op::Array& array, const WeightSource& source) {
    (void)packed_.begin(source, array);
    if (packed_.get() == nullptr && !find_filters(array)) TESSERA_TRY(pack_filters(array));
    by_ = packed_.get()->by;
    operands_.filters = &packed_.get()->filters;
    return {};
  }

  bool find_filters(const op::Array& array) {
    return packed_.find([&](const PackedSlices& packed) {
      return packed.from.is_of(array) && packed.wanted->spec() == convolution_->spec();
    });
  }

  Result<void> pack_filters(const op::Array& array) {
    std::vector<float> filters(static_cast<std::size_t>(array.size()));
    widen(array, array.layout, filters.data());
    auto made = std::make_shared<PackedSlices>(array);
    made->wanted = convolution_;
    made->by = TESSERA_TRY(convolution_for(convolution_, filters.data(), libraries_));
    made->filters = TESSERA_TRY(made->by->pack(filters.data()));
    packed_.use(std::move(made));
    return {};
  }

  const LibraryForm& form_;
  Libraries& libraries_;
  ConvolutionSpec spec_;  ///< of a slice, or of all of them
  DepthAxis depth_;
  std::int64_t channels_ = 0, slices_ = 0;
  bool is_sliced_ = false;  ///< items are slices, each gathered by the thread that computes it
  std::size_t source_numbers_ = 0, result_numbers_ = 0;  ///< of a slice
  std::shared_ptr<const Convolution> convolution_;       ///< for filters of finite numbers
  std::shared_ptr<const Convolution> by_;                ///< for those of the launch
  std::vector<float> bias_;
  std::vector<float> memory_;  ///< all slices of the source and of the result, if they are few
  WeightsAs<PackedSlices> packed_;
  ConvolutionOperands operands_;
  op::Array source_, result_;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_slice_convolution_call(const LibraryForm& form,
                                                                 std::span<const op::Array> inputs,
                                                                 std::span<const op::Array> results,
                                                                 Libraries& libraries) {
  auto out = std::make_unique<SliceConvolutionCall>(form, libraries);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
