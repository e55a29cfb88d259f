// Convolutions: a window slides over a large side [N, groups * C, size…]; each of its positions is an element
// of a small side [N, groups * O, positions…]; the weights are [groups * O, C, kernel…]. To the small side
// and to the weights they are products of matrices whose right side is what the window sees; to the large
// side, each element adds up the positions that see it.
#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/product_text.h"
#include "tessera/runtime/cuda/window_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// The operands, contiguous, and the geometry in numbers.
struct Convolution {
  Operand large, small, weights;
  op::Sliding window;
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t large_channels() const { return large.shape[1] / groups; }
  [[nodiscard]] std::int64_t small_channels() const { return small.shape[1] / groups; }
  [[nodiscard]] std::int64_t images() const { return large.shape[0]; }
  [[nodiscard]] IndexWidth width() const {
    return width_of(window, std::max({large.size(), small.size(), weights.size()}));
  }
  void describe(KernelWriter& kernel) const {
    add_window(kernel, window);
    kernel.integer("groups", groups).integer("channels", large_channels());
    kernel.integer("taps", window.taps).integer("positions", window.positions).integer("volume", window.size);
  }
};

Result<Convolution> convolution_of(const op::CallInfo& call, Operand large, Operand small, Operand weights,
                                   std::span<const op::Dim> kernel) {
  Convolution out{std::move(large), std::move(small), std::move(weights), {}, call.integer("groups")};
  const op::Window window = TESSERA_TRY(op::window_of(call, kernel));
  out.window = op::Sliding::of(window, out.large.shape, out.small.shape);
  return out;
}

constexpr std::string_view nothing;

/// `seen(x, image, channel, tap, place)`: the element that a tap of the window sees; padding is 0.
constexpr std::string_view seen_text = R"(
__device__ inline W seen(const T* image, I tap, I place, const I* extent, const I* kernel, const I* places,
                         const I* stride, const I* pad, const I* dilation) {
  const I c = place % places[2] * stride[2] - pad[2] + tap % kernel[2] * dilation[2];
  place /= places[2];
  tap /= kernel[2];
  const I b = place % places[1] * stride[1] - pad[1] + tap % kernel[1] * dilation[1];
  const I a = place / places[1] * stride[0] - pad[0] + tap / kernel[1] * dilation[0];
  if (a < 0 || a >= extent[0] || b < 0 || b >= extent[1] || c < 0 || c >= extent[2]) return 0;
  return widen(image[(a * extent[1] + b) * extent[2] + c]);
}
)";

constexpr std::string_view conv_load_a = "value = widen(w[(batch * rows + m) * depth + k]);";
constexpr std::string_view conv_load_b = R"(
        const T* const image = x + ((n / positions * groups + batch) * channels + k / taps) * volume;
        value = seen(image, k % taps, n % positions, extent, kernel, places, stride, pad, dilation);
)";
constexpr std::string_view conv_store =
    "y[((n / positions * groups + batch) * rows + m) * positions + n % positions] = narrow(sum);\n";
constexpr std::string_view conv_store_with_bias =
    "y[((n / positions * groups + batch) * rows + m) * positions + n % positions] = "
    "narrow(add(sum, widen(bias[(batch * rows + m) * bias_step])));\n";

constexpr std::string_view weights_load_a =
    "value = widen(dy[((k / positions * groups + batch) * rows + m) * positions + k % positions]);";
constexpr std::string_view weights_load_b = R"(
        const T* const image = x + ((k / positions * groups + batch) * channels + n / taps) * volume;
        value = seen(image, n % taps, k % positions, extent, kernel, places, stride, pad, dilation);
)";
constexpr std::string_view weights_store = "dw[(batch * rows + m) * columns + n] = narrow(sum);\n";

// A thread has one element of four channels, since all four take the same elements of the small side.
constexpr std::string_view transpose_body = R"(
    I number = at;
    const I element = number % volume;
    number /= volume;
    const I first = number % fours * 4;
    number /= fours;
    const I group = number % groups, image = number / groups;
    const I c = element % extent[2], b = element / extent[2] % extent[1], a = element / extent[2] / extent[1];
    const T* const small = x + (image * groups + group) * small_channels * positions;
    const T* const weights = w + (group * small_channels * channels + first) * taps;
    const int used = channels - first < 4 ? (int)(channels - first) : 4;
    W sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = 0;
    for (I tap = 0; tap < taps; ++tap) {
      const I r = c + pad[2] - tap % kernel[2] * dilation[2];
      const I q = b + pad[1] - tap / kernel[2] % kernel[1] * dilation[1];
      const I p = a + pad[0] - tap / kernel[2] / kernel[1] * dilation[0];
      if (p < 0 || q < 0 || r < 0 || p % stride[0] != 0 || q % stride[1] != 0 || r % stride[2] != 0) continue;
      if (p / stride[0] >= places[0] || q / stride[1] >= places[1] || r / stride[2] >= places[2]) continue;
      const I place = (p / stride[0] * places[1] + q / stride[1]) * places[2] + r / stride[2];
      for (I o = 0; o < small_channels; ++o) {
        const W value = widen(small[o * positions + place]);
        for (int i = 0; i < 4; ++i)
          if (i < used) sums[i] = add(sums[i], mul(value, widen(weights[(o * channels + i) * taps + tap])));
      }
    }
    for (int i = 0; i < used; ++i) {
      const I channel = group * channels + first + i;
      W sum = sums[i];
      if (HAS_BIAS) sum = add(sum, widen(bias[channel * bias_step]));
      y[(image * groups * channels + channel) * volume + element] = narrow(sum);
    }
)";

/// Nothing is added up: zeros, or the bias of each channel.
void write_bias(const op::CallInfo& call, ProgramWriter& program, const Operand& y) {
  if (!call.has_input(2)) return program.clear(y.memory, y.size() * y.element_bytes());
  Operand bias = program.input(2);
  const std::int64_t step = bias.strides[0];
  bias.shape = y.shape;
  bias.strides = op::Extents(y.rank(), 0);
  bias.strides[1] = step;
  program.copy(bias, y);
}

/// The bias, or any memory where there is none.
void add_bias(const op::CallInfo& call, const ProgramWriter& program, const Operand& y,
              KernelWriter& kernel) {
  const bool has_bias = call.has_input(2);
  kernel.pointer("const T", "bias", has_bias ? program.input(2).memory : y.memory);
  kernel.integer("bias_step", has_bias ? program.input(2).strides[0] : 0);
}

}  // namespace

Result<void> runtime::cuda::write_conv(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  if (y.size() == 0) return {};
  if (program.input(0).size() == 0) {
    write_bias(call, program, y);
    return {};
  }
  const Operand x = program.dense(program.input(0)), w = program.dense(program.input(1));
  const Convolution c = TESSERA_TRY(convolution_of(call, x, y, w, op::spatial(call.input(1).shape)));
  TiledProduct product{.name = "conv",
                       .dtype = y.dtype,
                       .width = c.width(),
                       .batches = c.groups,
                       .rows = c.small_channels(),
                       .columns = c.images() * c.window.positions,
                       .depth = c.large_channels() * c.window.taps,
                       .prepare = nothing,
                       .load_a = conv_load_a,
                       .load_b = conv_load_b,
                       .store = call.has_input(2) ? conv_store_with_bias : conv_store};
  product.describe = [&](KernelWriter& kernel) {
    kernel.prelude(seen_text).pointer("const T", "x", x.memory).pointer("const T", "w", w.memory);
    kernel.pointer("T", "y", y.memory);
    add_bias(call, program, y, kernel);
    c.describe(kernel);
  };
  write_product(program, product);
  return {};
}

Result<void> runtime::cuda::write_conv_weight_gradient(const op::CallInfo& call, ProgramWriter& program) {
  const Operand dw = program.result(0);
  if (dw.size() == 0) return {};
  if (program.input(0).size() == 0 || program.input(1).size() == 0) {
    program.clear(dw.memory, dw.size() * dw.element_bytes());
    return {};
  }
  const Operand x = program.dense(program.input(0)), dy = program.dense(program.input(1));
  const Convolution c = TESSERA_TRY(convolution_of(call, x, dy, dw, call.shape("kernel")));
  TiledProduct product{.name = "conv_weight_gradient",
                       .dtype = dw.dtype,
                       .width = c.width(),
                       .batches = c.groups,
                       .rows = c.small_channels(),
                       .columns = c.large_channels() * c.window.taps,
                       .depth = c.images() * c.window.positions,
                       .prepare = nothing,
                       .load_a = weights_load_a,
                       .load_b = weights_load_b,
                       .store = weights_store,
                       .b_by_depth = true};
  product.describe = [&](KernelWriter& kernel) {
    kernel.prelude(seen_text).pointer("const T", "x", x.memory).pointer("const T", "dy", dy.memory);
    kernel.pointer("T", "dw", dw.memory);
    c.describe(kernel);
  };
  write_product(program, product);
  return {};
}

Result<void> runtime::cuda::write_conv_transpose(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  if (y.size() == 0) return {};
  if (program.input(0).size() == 0) {
    write_bias(call, program, y);
    return {};
  }
  const Operand x = program.dense(program.input(0)), w = program.dense(program.input(1));
  const Convolution c = TESSERA_TRY(convolution_of(call, y, x, w, op::spatial(call.input(1).shape)));
  const std::int64_t fours = (c.large_channels() + 3) / 4;
  KernelWriter kernel("tessera_conv_transpose", c.width(), element_text(y.dtype, Precision::narrow));
  kernel.prelude(cat("enum { HAS_BIAS = ", call.has_input(2) ? 1 : 0, " };\n"));
  kernel.pointer("const T", "x", x.memory).pointer("const T", "w", w.memory).pointer("T", "y", y.memory);
  add_bias(call, program, y, kernel);
  c.describe(kernel);
  kernel.integer("small_channels", c.small_channels()).integer("fours", fours);
  program.add(std::move(kernel).launch_items(transpose_body, c.images() * c.groups * fours * c.window.size));
  return {};
}
