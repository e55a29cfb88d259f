#include "tessera/runtime/cpu/padded_image.h"

#include <algorithm>
#include <cstring>

using namespace tessera::runtime::cpu;

PaddedImage::PaddedImage(const WindowGrid& grid, float padding) : grid_(grid), padding_(padding) {
  for (std::size_t axis = 0; axis < 2; ++axis)
    seen_[axis] =
        (grid.positions[axis] - 1) * grid.strides[axis] + (grid.window[axis] - 1) * grid.dilations[axis] + 1;
  for (std::int64_t y = 0; y < grid.window[0]; ++y)
    for (std::int64_t x = 0; x < grid.window[1]; ++x)
      offsets_.push_back(y * grid.dilations[0] * seen_[1] + x * grid.dilations[1]);
  // The last row is read as far as its whole vectors go.
  image_numbers_ =
      static_cast<std::size_t>((seen_[0] - 1) * seen_[1] + (grid.window[1] - 1) * grid.dilations[1] +
                               result_stride() * grid.strides[1]);
}

std::int64_t PaddedImage::result_stride() const {
  const std::int64_t vector = gemm_kernel().vector;
  return (grid_.positions[1] + vector - 1) / vector * vector;
}

std::size_t PaddedImage::result_numbers() const {
  return static_cast<std::size_t>(grid_.positions[0] * result_stride());
}

GemmKernel::Image PaddedImage::copy(const float* image, float* memory) const {
  const std::int64_t pitch = seen_[1], left = std::min(grid_.pads[1], pitch);
  const std::int64_t columns = std::clamp<std::int64_t>(pitch - left, 0, grid_.size[1]);
  const std::int64_t above = std::min(grid_.pads[0], seen_[0]);
  const std::int64_t rows = std::clamp<std::int64_t>(seen_[0] - above, 0, grid_.size[0]);
  float* to = std::fill_n(memory, above * pitch, padding_);
  for (std::int64_t row = 0; row < rows; ++row, image += grid_.size[1]) {
    to = std::fill_n(to, left, padding_);
    std::memcpy(to, image, static_cast<std::size_t>(columns) * sizeof(float));
    to = std::fill_n(to + columns, pitch - left - columns, padding_);
  }
  // What is read behind the last row gives no result, but must be there.
  std::fill(to, memory + image_numbers_, padding_);
  return {.in = memory,
          .row_step = grid_.strides[0] * seen_[1],
          .column_step = grid_.strides[1],
          .offsets = offsets_.data(),
          .taps = static_cast<std::int64_t>(offsets_.size()),
          .rows = grid_.positions[0],
          .columns = grid_.positions[1]};
}
