// One image with the padding that windows see around it, in scratch memory, for the filters of
// blocked_gemm.h.
#pragma once

#include <vector>

#include "tessera/runtime/cpu/blocked_gemm.h"
#include "tessera/runtime/cpu/convolution.h"

namespace tessera::runtime::cpu {

/// Windows over an image: position p and tap t see element p * stride + t * dilation - pad, along each axis.
struct WindowGrid {
  Pair size{}, positions{}, window{};
  Pair strides{1, 1}, dilations{1, 1}, pads{};
};

class PaddedImage {
 public:
  PaddedImage() = default;
  /// `padding` is what windows see beside the image.
  PaddedImage(const WindowGrid& grid, float padding);

  /// Numbers of scratch memory for the image, and for a result whose rows are whole vectors.
  [[nodiscard]] std::size_t image_numbers() const { return image_numbers_; }
  [[nodiscard]] std::size_t result_numbers() const;
  /// From one row of such a result to the next.
  [[nodiscard]] std::int64_t result_stride() const;

  /// Copies an image into scratch memory. Weights, `start` and the result are left to the caller; the image
  /// is valid as long as this and the memory.
  [[nodiscard]] GemmKernel::Image copy(const float* image, float* memory) const;

 private:
  WindowGrid grid_;
  float padding_ = 0;
  Pair seen_{};  ///< rows and columns that windows see
  std::vector<std::int64_t> offsets_;
  std::size_t image_numbers_ = 0;
};

}  // namespace tessera::runtime::cpu
