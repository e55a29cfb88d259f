// Convolutions of 32-bit integers, exactly. Those of quantised models are bytes, moved by a number: their
// windows are gathered as the columns of a matrix that the filters multiply. Others, and those with few
// filters in a group, go over the images once per element of a window.
#include <cstring>

#include "tessera/base/rounding.h"
#include "tessera/op/families/window.h"
#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/integer_bytes.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Bytes of windows that are gathered at once: they stay in the second cache.
constexpr std::int64_t most_gathered_bytes = 1 << 18;
constexpr std::int64_t least_block = 64, most_block = 1024;
/// With fewer filters a window is not read often enough to pay for being gathered.
constexpr std::int64_t least_filters = 4;

/// Filters as bytes.
struct FilterBytes final : Derived {
  std::vector<std::uint8_t> bytes;
  std::uint8_t zero = 0;  ///< what stands for 0
  WeightPlace from;

  explicit FilterBytes(const op::Array& array) : from(array) {}
  [[nodiscard]] std::size_t byte_size() const override { return bytes.size(); }
};

class IntegerConvolutionCall final : public LibraryCall {
 public:
  IntegerConvolutionCall(const LibraryForm& form, Libraries& libraries)
      : form_(form), filter_bytes_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    const op::CallInfo call(*form_.card, {}, form_.attributes);
    const op::Extents &x = inputs[form_.left].shape(), &w = inputs[form_.right].shape();
    const auto sizes = std::span<const std::int64_t>(w).subspan(2);
    const op::Window window = TESSERA_TRY(op::window_of(call, ir::shape_of(sizes)));
    TESSERA_TRY(source_.prepare(inputs[form_.left].layout));
    TESSERA_TRY(weights_.prepare(inputs[form_.right].layout));
    if (form_.bias != no_input) TESSERA_TRY(bias_.prepare(inputs[form_.bias].layout));
    if (result.size() == 0) return {};
    batch_ = x[0];
    groups_ = call.integer("groups");
    channels_ = w[1];
    filters_ = w[0] / groups_;
    if (inputs[form_.left].size() * inputs[form_.right].size() != 0)
      sliding_ = op::Sliding::of(window, x, result.shape());
    positions_ = result.size() / (batch_ * w[0]);
    block_ = std::clamp(most_gathered_bytes / std::max<std::int64_t>(depth(), 1), least_block, most_block);
    const auto onednn = OneDnn::open();
    if (onednn && OneDnn::multiplies_bytes_exactly() && filters_ >= least_filters && depth() > 0)
      onednn_ = *onednn;
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    in_ = source_.get(launch.inputs[form_.left]);
    out_ = reinterpret_cast<std::int32_t*>(launch.results[0].at(launch.results[0].layout.offset));
    added_ = form_.bias == no_input ? nullptr : bias_.get(launch.inputs[form_.bias]);
    read_weights(launch.inputs[form_.right], launch.weights);
    uses_bytes_ = false;
    if (filter_bytes_.get() == nullptr) return {};
    const auto count = static_cast<std::size_t>(launch.inputs[form_.left].size());
    const auto zero = to_bytes(std::span(in_, count), 0, source_bytes_);
    uses_bytes_ = zero.has_value();
    source_zero_ = zero.value_or(0);
    return {};
  }

  [[nodiscard]] std::int64_t items() const override {
    return batch_ * groups_ * (uses_bytes_ ? divided_up(positions_, block_) : filters_);
  }

  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    std::int8_t* const windows =
        uses_bytes_
            ? reinterpret_cast<std::int8_t*>(scratch.reserve(static_cast<std::size_t>(depth() * block_)))
            : nullptr;
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      if (uses_bytes_)
        TESSERA_TRY(multiply(item, windows));
      else
        slide(item);
    }
    return {};
  }

  void end() override { filter_bytes_.end(); }
  [[nodiscard]] std::string implementation() const override { return uses_bytes_ ? "bytes" : "loops"; }

 private:
  [[nodiscard]] std::int64_t depth() const { return channels_ * sliding_.taps; }

  void read_weights(const op::Array& array, const WeightSource& source) {
    const bool stay = filter_bytes_.begin(source, array);
    if (!stay) {
      plain_ = weights_.get(array);
      may_be_bytes_ = onednn_ != nullptr;
    }
    if (filter_bytes_.get() != nullptr || !may_be_bytes_) return;
    if (filter_bytes_.find([&](const FilterBytes& one) { return one.from.is_of(array); })) return;
    auto made = std::make_shared<FilterBytes>(array);
    const auto zero = to_bytes(std::span(plain_, static_cast<std::size_t>(array.size())), 0, made->bytes);
    may_be_bytes_ = zero.has_value();
    if (!zero) return;
    made->zero = *zero;
    filter_bytes_.use(std::move(made));
  }

  /// A block of positions of one group of an image, by bytes.
  [[nodiscard]] Result<void> multiply(std::int64_t item, std::int8_t* windows) const {
    const std::int64_t blocks = divided_up(positions_, block_), image = item / blocks,
                       position = item % blocks * block_, count = std::min(block_, positions_ - position);
    gather(source_bytes_.data() + image * channels_ * sliding_.size, position, count, windows);
    const std::int64_t filter = image % groups_ * filters_;
    std::int32_t* const out = out_ + image * filters_ * positions_ + position;
    TESSERA_TRY(onednn_->multiply({.rows = filters_,
                                   .columns = count,
                                   .depth = depth(),
                                   .a = filter_bytes_.get()->bytes.data() + filter * depth(),
                                   .a_zero = filter_bytes_.get()->zero,
                                   .b = windows,
                                   .b_stride = count,
                                   .b_zero = source_zero_,
                                   .c = out,
                                   .c_stride = positions_}));
    for (std::int64_t f = 0; added_ != nullptr && f < filters_; ++f)
      for (std::int64_t p = 0; p < count; ++p) add(out[f * positions_ + p], added_[filter + f], 1);
    return {};
  }

  /// Windows as columns; padding is what stands for 0.
  void gather(const std::int8_t* source, std::int64_t position, std::int64_t count,
              std::int8_t* windows) const {
    std::memset(windows, source_zero_, static_cast<std::size_t>(depth() * count));
    for (std::int64_t c = 0; c < channels_; ++c, source += sliding_.size)
      for (std::int64_t tap = 0; tap < sliding_.taps; ++tap, windows += count)
        sliding_.for_each_run(
            tap, position, position + count,
            [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t length) {
              copy_run(source + from, stride, length, windows + at);
            });
  }

  static void copy_run(const std::int8_t* from, std::int64_t stride, std::int64_t count, std::int8_t* to) {
    if (stride == 1) return std::memcpy(to, from, static_cast<std::size_t>(count)), void();
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }

  /// One filter on one image.
  void slide(std::int64_t item) const {
    const std::int64_t filter = item % (groups_ * filters_);
    std::int32_t* const out = out_ + item * positions_;
    std::fill_n(out, positions_, added_ == nullptr ? 0 : added_[filter]);
    const std::int32_t* in = in_ + item / filters_ * channels_ * sliding_.size;
    const std::int32_t* weight = plain_ + filter * depth();
    for (std::int64_t c = 0; depth() > 0 && c < channels_; ++c, in += sliding_.size)
      for (std::int64_t tap = 0; tap < sliding_.taps; ++tap, ++weight)
        sliding_.for_each_run(
            tap, 0, positions_,
            [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t length) {
              for (std::int64_t i = 0; i < length; ++i) add(out[at + i], in[from + i * stride], *weight);
            });
  }

  /// As integers wrap.
  static void add(std::int32_t& to, std::int32_t a, std::int32_t b) {
    to = static_cast<std::int32_t>(static_cast<std::uint32_t>(to) +
                                   static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  }

  const LibraryForm& form_;
  op::Sliding sliding_;
  std::int64_t batch_ = 0, groups_ = 1, channels_ = 0, filters_ = 0;  ///< the last two of a group
  std::int64_t positions_ = 0, block_ = 1;
  const OneDnn* onednn_ = nullptr;  ///< where bytes pay
  DenseIntegers source_, weights_, bias_;
  const std::int32_t *in_ = nullptr, *plain_ = nullptr, *added_ = nullptr;
  std::int32_t* out_ = nullptr;
  std::vector<std::int8_t> source_bytes_;
  WeightsAs<FilterBytes> filter_bytes_;
  bool may_be_bytes_ = false;  ///< the weights of this launch
  std::int8_t source_zero_ = 0;
  bool uses_bytes_ = false;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_integer_convolution_call(const LibraryForm& form,
                                                                   std::span<const op::Array> inputs,
                                                                   std::span<const op::Array> results,
                                                                   Libraries& libraries) {
  auto out = std::make_unique<IntegerConvolutionCall>(form, libraries);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
