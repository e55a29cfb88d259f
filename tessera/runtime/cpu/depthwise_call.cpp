// Convolutions in which each filter sees one channel, row by row on the images as they lie: there is too
// little to compute for each element to pay for another order of the channels.
#include <algorithm>
#include <cstring>

#include "tessera/runtime/cpu/blocked_gemm.h"
#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Windows with more elements are left to others.
constexpr std::int64_t most_taps = 64;
/// So are rows that are shorter, and steps along them: beginning a row takes as long as computing these.
constexpr std::int64_t least_width = 32;

class DepthwiseCall final : public LibraryCall {
 public:
  explicit DepthwiseCall(const LibraryForm& form) : form_(form) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    spec_ = TESSERA_TRY(convolution_spec(form_, inputs, result));
    output_ = spec_.output_size();
    padded_ = {spec_.size[0] + spec_.padding_low[0] + spec_.padding_high[0],
               spec_.size[1] + spec_.padding_low[1] + spec_.padding_high[1]};
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
    const auto area = static_cast<std::size_t>(padded_[0] * padded_[1]);
    const auto width = static_cast<std::size_t>(output_[1]);
    auto* const memory = reinterpret_cast<float*>(scratch.reserve((area + 2 * width) * sizeof(float)));
    for (std::int64_t item = range.begin; item < range.end; ++item)
      filter(item, memory, memory + area, memory + area + width);
    return {};
  }
  [[nodiscard]] std::string implementation() const override { return "rows"; }

 private:
  /// The channel with its padding.
  const float* padded(const float* channel, float* memory) const {
    if (padded_ == spec_.size) return channel;
    std::fill_n(memory, padded_[0] * padded_[1], 0.0f);
    for (std::int64_t row = 0; row < spec_.size[0]; ++row)
      std::memcpy(memory + (row + spec_.padding_low[0]) * padded_[1] + spec_.padding_low[1],
                  channel + row * spec_.size[1], static_cast<std::size_t>(spec_.size[1]) * sizeof(float));
    return memory;
  }

  /// One filter on one image.
  void filter(std::int64_t item, float* memory, float* product, float* workspace) const {
    const std::int64_t image = item / spec_.filters, index = item % spec_.filters;
    const std::int64_t channel = image * spec_.channels + index / (spec_.filters / spec_.channels);
    const std::int64_t taps = spec_.window[0] * spec_.window[1];
    const float* const in = padded(operands_.source + channel * spec_.size[0] * spec_.size[1], memory);
    const float* from[most_taps];
    for (std::int64_t row = 0; row < output_[0]; ++row) {
      for (std::int64_t t = 0; t < taps; ++t)
        from[t] = in + (row * spec_.strides[0] + t / spec_.window[1] * spec_.dilations[0]) * padded_[1] +
                  t % spec_.window[1] * spec_.dilations[1];
      gemm_kernel().filter(from, weights_ + index * taps, taps, spec_.strides[1], output_[1], product);
      const std::int64_t place = (item * output_[0] + row) * output_[1];
      EpilogueRow values{.bias_of_row = true};
      if (spec_.epilogue.has_bias) values.bias = operands_.bias + index;
      if (form_.residual != no_input) values.residual = operands_.residual + place;
      finish_row(spec_.epilogue, values, product, operands_.destination + place, workspace,
                 static_cast<std::size_t>(output_[1]));
    }
  }

  const LibraryForm& form_;
  ConvolutionSpec spec_;
  Pair output_{}, padded_{};
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
  return call.integer("groups") == x[1] && x[1] > 1 && taps <= most_taps && x.back() >= least_width &&
         (strides.empty() || strides.back() == 1);
}

Result<LibraryCallRef> runtime::cpu::make_depthwise_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results) {
  auto out = std::make_unique<DepthwiseCall>(form);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
