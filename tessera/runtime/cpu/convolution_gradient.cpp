#include "tessera/runtime/cpu/convolution_gradient.h"

#include <algorithm>

#include "tessera/op/catalogue.h"
#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/windows.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Elements of the matrix of windows that are made at once.
constexpr std::int64_t most_elements = std::int64_t{4} << 20;

op::Array matrix(const float* data, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                 std::int64_t column_stride) {
  op::Layout layout = op::contiguous({rows, columns});
  layout.strides = {row_stride, column_stride};
  return {op::Dtype::f32, std::move(layout), reinterpret_cast<std::byte*>(const_cast<float*>(data))};
}

Result<void> multiply(const op::Array& a, const op::Array& b, const op::Array& c, SingleCallContext context) {
  static const op::Card& card = *op::find_card("matmul");
  const op::Attributes attributes = TESSERA_TRY(op::complete_attributes(card, {}));
  op::ValueTypes types;
  for (const op::Array* operand : {&a, &b})
    types.push_back({operand->dtype, ir::shape_of(std::span<const std::int64_t>(operand->shape()))});
  const op::Array inputs[] = {a, b}, results[] = {c};
  if (TESSERA_TRY(run_by_library({card, types, attributes}, inputs, results, context))) return {};
  return Error(ErrorCode::internal, "a matrix product of f32 has no library");
}

/// Adds a row of windows' elements to a row of an image, from `first` on, `stride` apart.
void scatter_row(const float* from, std::int64_t count, std::int64_t first, std::int64_t stride,
                 std::int64_t size, float* to) {
  const std::int64_t begin =
      std::clamp<std::int64_t>(first < 0 ? (-first + stride - 1) / stride : 0, 0, count);
  const std::int64_t end =
      std::clamp<std::int64_t>(first < size ? (size - first + stride - 1) / stride : 0, begin, count);
  if (stride == 1)
    for (std::int64_t i = begin; i < end; ++i) to[first + i] += from[i];
  else
    for (std::int64_t i = begin; i < end; ++i) to[first + i * stride] += from[i];
}

/// A convolution from a large side to a small one, with the arrays of both and of its weights:
/// [batch, channels, size…], [batch, filters, output size…], [filters, channels / groups, window…].
class Gradient {
 public:
  Gradient(const ConvolutionSpec& spec, SingleCallContext context)
      : spec_(spec),
        context_(context),
        area_(spec.size[0] * spec.size[1]),
        taps_(spec.window[0] * spec.window[1]),
        positions_(spec.output_size()[0] * spec.output_size()[1]),
        channels_(spec.channels / spec.groups),
        filters_(spec.filters / spec.groups) {}

  /// Adds to `large`.
  Result<void> to_large(const float* small, const float* weights, float* large) {
    return for_each_part(
        [&](std::int64_t image, std::int64_t group, std::int64_t first, std::int64_t count) -> Result<void> {
          const float* filters = weights + (group * filters_ * channels_ + first) * taps_;
          const float* from = small + (image * spec_.filters + group * filters_) * positions_;
          TESSERA_TRY(multiply(matrix(filters, count * taps_, filters_, 1, channels_ * taps_),
                               matrix(from, filters_, positions_, positions_, 1), columns(count), context_));
          float* to = large + (image * spec_.channels + group * channels_ + first) * area_;
          context_.threads.run(count, 1, [&](std::int64_t begin, std::int64_t end, unsigned) {
            for (std::int64_t c = begin; c < end; ++c) scatter(c, to + c * area_);
          });
          return {};
        });
  }

  /// Adds to `weights`.
  Result<void> to_weights(const float* large, const float* small, float* weights) {
    return for_each_part([&](std::int64_t image, std::int64_t group, std::int64_t first,
                             std::int64_t count) -> Result<void> {
      const float* from = large + (image * spec_.channels + group * channels_ + first) * area_;
      context_.threads.run(count, 1, [&](std::int64_t begin, std::int64_t end, unsigned) {
        gather_windows(spec_, from + begin * area_, end - begin, 0, positions_, column(begin));
      });
      const auto product = TESSERA_TRY(op::HostTensor::allocate(op::Dtype::f32, {filters_, count * taps_}));
      const float* gradient = small + (image * spec_.filters + group * filters_) * positions_;
      TESSERA_TRY(multiply(matrix(gradient, filters_, positions_, positions_, 1),
                           matrix(column(0), positions_, count * taps_, 1, positions_), product.array(),
                           context_));
      const float* sums = product.values<float>().data();
      for (std::int64_t f = 0; f < filters_; ++f) {
        float* to = weights + ((group * filters_ + f) * channels_ + first) * taps_;
        for (std::int64_t i = 0; i < count * taps_; ++i) to[i] += sums[f * count * taps_ + i];
      }
      return {};
    });
  }

 private:
  /// Calls `f(image, group, first channel, channels)`; there are columns for so many channels.
  template <class F>
  Result<void> for_each_part(F&& f) {
    const std::int64_t fitting = most_elements / std::max<std::int64_t>(1, taps_ * positions_);
    const std::int64_t most = std::clamp<std::int64_t>(fitting, 1, channels_);
    columns_ = TESSERA_TRY(op::HostTensor::allocate(op::Dtype::f32, {most, taps_, positions_}));
    for (std::int64_t image = 0; image < spec_.batch; ++image)
      for (std::int64_t group = 0; group < spec_.groups; ++group)
        for (std::int64_t first = 0; first < channels_; first += most)
          TESSERA_TRY(f(image, group, first, std::min(most, channels_ - first)));
    return {};
  }

  /// The elements of the windows of channel `c` of a part.
  [[nodiscard]] float* column(std::int64_t c) const {
    return columns_.values<float>().data() + c * taps_ * positions_;
  }
  [[nodiscard]] op::Array columns(std::int64_t count) const {
    return matrix(column(0), count * taps_, positions_, positions_, 1);
  }

  void scatter(std::int64_t c, float* image) const {
    const auto [rows, width] = spec_.output_size();
    const float* from = column(c);
    for (std::int64_t i = 0; i < spec_.window[0]; ++i)
      for (std::int64_t j = 0; j < spec_.window[1]; ++j)
        for (std::int64_t row = 0; row < rows; ++row, from += width) {
          const std::int64_t y = row * spec_.strides[0] - spec_.padding_low[0] + i * spec_.dilations[0];
          if (y >= 0 && y < spec_.size[0])
            scatter_row(from, width, j * spec_.dilations[1] - spec_.padding_low[1], spec_.strides[1],
                        spec_.size[1], image + y * spec_.size[1]);
        }
  }

  const ConvolutionSpec& spec_;
  SingleCallContext context_;
  const std::int64_t area_, taps_, positions_;
  const std::int64_t channels_, filters_;  ///< of a group
  op::HostTensor columns_;
};

Result<const float*> dense(DenseOperand& operand, const op::Array& array) {
  TESSERA_TRY(operand.prepare(array.layout));
  return operand.get(array);
}

float* elements(const op::Array& result) { return reinterpret_cast<float*>(result.at(result.layout.offset)); }

/// The result of a transposed convolution before anything is added: the bias.
Result<void> fill_bias(const op::CallInfo& call, std::span<const op::Array> inputs,
                       const ConvolutionSpec& spec, float* to) {
  const std::int64_t area = spec.size[0] * spec.size[1];
  DenseOperand operand;
  const float* bias = call.has_input(2) ? TESSERA_TRY(dense(operand, inputs[2])) : nullptr;
  for (std::int64_t c = 0; c < spec.batch * spec.channels; ++c)
    std::fill_n(to + c * area, area, bias == nullptr ? 0.0f : bias[c % spec.channels]);
  return {};
}

}  // namespace

Result<bool> runtime::cpu::run_convolution_gradient(const op::CallInfo& call,
                                                    std::span<const op::Array> inputs,
                                                    std::span<const op::Array> results,
                                                    SingleCallContext context) {
  const bool is_transpose = call.card().name == "conv_transpose";
  if (!is_transpose && call.card().name != "conv_weight_gradient") return false;
  const std::size_t rank = inputs[0].rank();
  if (inputs[0].dtype != op::Dtype::f32 || (rank != 3 && rank != 4)) return false;
  const op::Array &large = is_transpose ? results[0] : inputs[0], &small = inputs[is_transpose ? 0 : 1],
                  &weights = is_transpose ? inputs[1] : results[0];
  const LibraryForm form{.op = LibraryOp::convolution,
                         .card = &call.card(),
                         .attributes = call.attributes(),
                         .left = 0,
                         .right = 1};
  const op::Array sides[] = {large, weights};
  const ConvolutionSpec spec = TESSERA_TRY(convolution_spec(form, sides, small));
  Gradient gradient(spec, context);
  DenseOperand first, second;
  const float* a = TESSERA_TRY(dense(first, inputs[0]));
  const float* b = TESSERA_TRY(dense(second, inputs[1]));
  float* const to = elements(results[0]);
  if (is_transpose) {
    TESSERA_TRY(fill_bias(call, inputs, spec, to));
    TESSERA_TRY(gradient.to_large(a, b, to));
    return true;
  }
  std::fill_n(to, results[0].size(), 0.0f);
  TESSERA_TRY(gradient.to_weights(a, b, to));
  return true;
}
