// Convolutions in which each filter sees one channel, image by image as they lie: there is too little to
// compute for each element to pay for another order of the channels.
#include <algorithm>

#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/padded_image.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Windows with more elements are left to others.
constexpr std::int64_t most_taps = 64;
/// So are steps along the rows that are wider, and rows of results that fill too little of the vectors, if
/// the channels fill those of oneDNN.
constexpr std::int64_t most_step = 2, library_channels = 16;
constexpr double least_filled = 0.7;

bool suits(std::int64_t columns, std::int64_t channels) {
  const std::int64_t vector = gemm_kernel().vector;
  const std::int64_t whole = (columns + vector - 1) / vector * vector;
  const double least = channels % library_channels == 0 ? least_filled : least_filled / 2;
  return static_cast<double>(columns) >= least * static_cast<double>(whole);
}

class DepthwiseCall final : public LibraryCall {
 public:
  explicit DepthwiseCall(const LibraryForm& form) : form_(form) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    spec_ = TESSERA_TRY(convolution_spec(form_, inputs, result));
    output_ = spec_.output_size();
    image_ = PaddedImage({.size = spec_.size,
                          .positions = output_,
                          .window = spec_.window,
                          .strides = spec_.strides,
                          .dilations = spec_.dilations,
                          .pads = spec_.padding_low},
                         0.0f);
    after_ = spec_.epilogue;
    after_.has_bias = false;
    TESSERA_TRY(source_.prepare(inputs[form_.left].layout));
    TESSERA_TRY(filters_.prepare(inputs[form_.right].layout));
    if (form_.bias != no_input) TESSERA_TRY(bias_.prepare(inputs[form_.bias].layout));
    if (form_.residual != no_input) TESSERA_TRY(residual_.prepare(inputs[form_.residual].layout));
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    operands_.source = source_.get(launch.inputs[form_.left]);
    weights_ = filters_.get(launch.inputs[form_.right]);
    operands_.destination = reinterpret_cast<float*>(launch.results[0].at(launch.results[0].layout.offset));
    if (form_.bias != no_input) operands_.bias = bias_.get(launch.inputs[form_.bias]);
    if (form_.residual != no_input) operands_.residual = residual_.get(launch.inputs[form_.residual]);
    return {};
  }

  [[nodiscard]] std::int64_t items() const override {
    return output_[0] * output_[1] == 0 ? 0 : spec_.batch * spec_.filters;
  }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    const std::size_t image = image_.image_numbers(), result = image_.result_numbers();
    auto* const memory = reinterpret_cast<float*>(scratch.reserve((image + 2 * result) * sizeof(float)));
    for (std::int64_t item = range.begin; item < range.end; ++item)
      filter(item, memory, memory + image, memory + image + result);
    return {};
  }
  [[nodiscard]] std::string implementation() const override { return "images"; }

 private:
  /// One filter on one image.
  void filter(std::int64_t item, float* memory, float* product, float* workspace) const {
    const std::int64_t number = item / spec_.filters, index = item % spec_.filters;
    const std::int64_t channel = number * spec_.channels + index / (spec_.filters / spec_.channels);
    const std::int64_t place = item * output_[0] * output_[1];
    float* const to = operands_.destination + place;
    // What is added may be what the destination held.
    const bool is_direct = image_.result_stride() == output_[1] && form_.residual == no_input;
    GemmKernel::Image image = image_.copy(operands_.source + channel * spec_.size[0] * spec_.size[1], memory);
    image.weights = weights_ + index * image.taps;
    if (spec_.epilogue.has_bias) image.start = operands_.bias[index];
    image.out = is_direct ? to : product;
    image.out_stride = image_.result_stride();
    gemm_kernel().filter(image);
    if (!is_direct)
      finish_rows(place, product, workspace);
    else if (after_ != Epilogue{})
      finish_row(after_, {}, to, to, workspace, static_cast<std::size_t>(output_[0] * output_[1]));
  }

  void finish_rows(std::int64_t place, float* product, float* workspace) const {
    for (std::int64_t row = 0; row < output_[0]; ++row, place += output_[1]) {
      EpilogueRow values;
      if (form_.residual != no_input) values.residual = operands_.residual + place;
      finish_row(after_, values, product + row * image_.result_stride(), operands_.destination + place,
                 workspace, static_cast<std::size_t>(output_[1]));
    }
  }

  const LibraryForm& form_;
  ConvolutionSpec spec_;
  Epilogue after_;  ///< what follows the bias
  Pair output_{};
  PaddedImage image_;
  DenseOperand source_, filters_, bias_, residual_;
  ConvolutionOperands operands_;
  const float* weights_ = nullptr;
};

}  // namespace

bool runtime::cpu::is_depthwise(const LibraryForm& form, std::span<const op::Array> inputs) {
  const op::CallInfo call(*form.card, {}, form.attributes);
  const op::Extents &x = inputs[form.left].shape(), &w = inputs[form.right].shape();
  std::int64_t taps = 1;
  for (std::size_t axis = 2; axis < w.size(); ++axis) taps *= std::min(w[axis], most_taps + 1);
  const auto& strides = call.integers("strides");
  const std::int64_t step = strides.empty() ? 1 : strides.back();
  return call.integer("groups") == x[1] && x[1] > 1 && taps <= most_taps && step <= most_step &&
         suits(x.back() / step, x[1]);
}

Result<LibraryCallRef> runtime::cpu::make_depthwise_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results) {
  auto out = std::make_unique<DepthwiseCall>(form);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
