// Pooling as a library call: the largest element or the mean of what a window sees, images side by side.
#include <algorithm>
#include <limits>

#include "tessera/op/families/window.h"
#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/padded_image.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

class PoolingCall final : public LibraryCall {
 public:
  explicit PoolingCall(const LibraryForm& form) : form_(form) {}

  Result<void> prepare(const op::Array& input, const op::Array& result) {
    TESSERA_TRY(source_.prepare(input.layout));
    if (input.size() == 0 || result.size() == 0) return {};
    const op::CallInfo call(*form_.card, {}, form_.attributes);
    const auto& kernel = call.integers("kernel");
    const op::Window window = TESSERA_TRY(op::window_of(call, ir::shape_of(kernel)));
    sliding_ = op::Sliding::of(window, input.shape(), result.shape());
    images_ = input.shape()[0] * input.shape()[1];
    if (form_.op == LibraryOp::avg_pool) set_weights(call.flag("count_include_pad"), window);
    if (form_.op == LibraryOp::max_pool) use_image();
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    in_ = source_.get(launch.inputs[form_.left]);
    out_ = reinterpret_cast<float*>(launch.results[0].at(launch.results[0].layout.offset));
    return {};
  }

  [[nodiscard]] std::int64_t items() const override { return images_; }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    if (image_) return take_largest_of_images(range, scratch);
    for (std::int64_t image = range.begin; image < range.end; ++image) {
      const float* in = in_ + image * sliding_.size;
      float* out = out_ + image * sliding_.positions;
      if (form_.op == LibraryOp::max_pool)
        take_largest(in, out);
      else
        take_mean(in, out);
    }
    return {};
  }
  [[nodiscard]] std::string implementation() const override { return "loops"; }

 private:
  static constexpr float lowest = -std::numeric_limits<float>::infinity();
  /// Windows with more elements, and steps that are wider, are left to the loops.
  static constexpr std::int64_t most_taps = 64, most_step = 2;

  /// Images of one or two axes, whose windows are filters.
  void use_image() {
    const auto& axes = sliding_.axes;
    if (axes.size() > 2 || sliding_.taps > most_taps || axes.back().stride > most_step) return;
    WindowGrid grid{.size = {1, 1}, .positions = {1, 1}, .window = {1, 1}};
    for (std::size_t i = 0, at = 2 - axes.size(); i < axes.size(); ++i, ++at) {
      grid.size[at] = axes[i].size;
      grid.positions[at] = axes[i].positions;
      grid.window[at] = axes[i].kernel;
      grid.strides[at] = axes[i].stride;
      grid.dilations[at] = axes[i].dilation;
      grid.pads[at] = axes[i].pad;
    }
    image_.emplace(grid, lowest);
    columns_ = grid.positions[1];
  }

  [[nodiscard]] Result<void> take_largest_of_images(kernel::ItemRange range, kernel::Scratch& scratch) const {
    const std::size_t numbers = image_->image_numbers();
    auto* const memory =
        reinterpret_cast<float*>(scratch.reserve((numbers + image_->result_numbers()) * sizeof(float)));
    for (std::int64_t number = range.begin; number < range.end; ++number) {
      float* const to = out_ + number * sliding_.positions;
      GemmKernel::Image image = image_->copy(in_ + number * sliding_.size, memory);
      image.start = lowest;
      image.out_stride = image_->result_stride();
      const bool is_direct = image.out_stride == columns_;
      image.out = is_direct ? to : memory + numbers;
      gemm_kernel().filter(image);
      for (std::int64_t row = 0; !is_direct && row < image.rows; ++row)
        std::copy_n(image.out + row * image.out_stride, columns_, to + row * columns_);
    }
    return {};
  }

  /// NaN is largest. Every window sees an element: the card allows no others.
  void take_largest(const float* in, float* out) const {
    std::fill_n(out, sliding_.positions, lowest);
    for_each_run(in, out, [](float* best, const float* from, std::int64_t stride, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = from[i * stride];
        best[i] = best[i] >= value || best[i] != best[i] ? best[i] : value;
      }
    });
  }

  void take_mean(const float* in, float* out) const {
    std::fill_n(out, sliding_.positions, 0.0f);
    for_each_run(in, out, [](float* sum, const float* from, std::int64_t stride, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) sum[i] += from[i * stride];
    });
    for (std::int64_t p = 0; p < sliding_.positions; ++p) out[p] *= weights_[static_cast<std::size_t>(p)];
  }

  template <class F>
  void for_each_run(const float* in, float* out, F&& f) const {
    for (std::int64_t tap = 0; tap < sliding_.taps; ++tap)
      sliding_.for_each_run(tap, 0, sliding_.positions,
                            [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t count) {
                              f(out + at, in + from, stride, count);
                            });
  }

  /// One over the number of elements that each position averages over. Padding may count, but not what lies
  /// beyond it.
  void set_weights(bool counts_padding, const op::Window& window) {
    weights_.assign(static_cast<std::size_t>(sliding_.positions), 1.0f);
    for (std::int64_t p = 0; p < sliding_.positions; ++p) {
      std::int64_t rest = p, count = 1;
      for (std::size_t i = sliding_.axes.size(); i-- > 0; rest /= sliding_.axes[i].positions) {
        const op::SlidingAxis& axis = sliding_.axes[i];
        const std::int64_t begin = rest % axis.positions * axis.stride - axis.pad;
        const std::int64_t end = std::min(begin + axis.kernel, axis.size + window[i].pad_end);
        count *= counts_padding ? end - begin : std::min(end, axis.size) - std::max<std::int64_t>(begin, 0);
      }
      weights_[static_cast<std::size_t>(p)] = 1.0f / static_cast<float>(count);
    }
  }

  const LibraryForm& form_;
  op::Sliding sliding_;
  std::int64_t images_ = 0;
  std::vector<float> weights_;  ///< of a mean, by position
  std::optional<PaddedImage> image_;
  std::int64_t columns_ = 0;  ///< of a result of the image
  DenseOperand source_;
  const float* in_ = nullptr;
  float* out_ = nullptr;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_pooling_call(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results) {
  auto out = std::make_unique<PoolingCall>(form);
  TESSERA_TRY(out->prepare(inputs[form.left], results[0]));
  return LibraryCallRef(std::move(out));
}
