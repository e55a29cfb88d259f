#include "tessera/runtime/cpu/windows.h"

#include <algorithm>
#include <cstring>

using namespace tessera::runtime::cpu;

namespace {

/// Elements of one row of the source, `stride` apart; those outside are zero.
struct SourceRow {
  const float* data;  ///< null: all are outside
  std::int64_t size, stride;

  void copy(std::int64_t first, std::int64_t count, float* out) const {
    if (data == nullptr) return std::fill(out, out + count, 0.0f), void();
    const std::int64_t before =
        std::clamp<std::int64_t>(first < 0 ? (-first + stride - 1) / stride : 0, 0, count);
    const std::int64_t inside =
        std::clamp<std::int64_t>(first < size ? (size - first + stride - 1) / stride : 0, before, count);
    std::fill(out, out + before, 0.0f);
    if (stride == 1 && inside > before)
      std::memcpy(out + before, data + first + before,
                  static_cast<std::size_t>(inside - before) * sizeof(float));
    else
      for (std::int64_t i = before; i < inside; ++i) out[i] = data[first + i * stride];
    std::fill(out + inside, out + count, 0.0f);
  }
};

/// One element of every window: `shift` is its place in the window.
void gather_element(const ConvolutionSpec& spec, const float* channel, const Pair& shift,
                    std::int64_t position, std::int64_t count, float* out) {
  const std::int64_t width = spec.output_size()[1];
  while (count > 0) {
    const std::int64_t row = position / width, column = position % width;
    const std::int64_t here = std::min(count, width - column);
    const std::int64_t from = row * spec.strides[0] - spec.padding_low[0] + shift[0];
    const bool is_inside = from >= 0 && from < spec.size[0];
    const SourceRow source{is_inside ? channel + from * spec.size[1] : nullptr, spec.size[1],
                           spec.strides[1]};
    source.copy(column * spec.strides[1] - spec.padding_low[1] + shift[1], here, out);
    position += here;
    count -= here;
    out += here;
  }
}

}  // namespace

void tessera::runtime::cpu::gather_windows(const ConvolutionSpec& spec, const float* source,
                                           std::int64_t channels, std::int64_t position, std::int64_t count,
                                           float* out) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < spec.window[0]; ++i)
      for (std::int64_t j = 0; j < spec.window[1]; ++j, out += count)
        gather_element(spec, source + c * spec.size[0] * spec.size[1],
                       {i * spec.dilations[0], j * spec.dilations[1]}, position, count, out);
}
