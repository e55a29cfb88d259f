// 3×3 convolutions of f32 by Winograd's method: tiles of 6×6 numbers of a source become 36 points each, the
// filters multiply those, point by point, and 36 products become 4×4 numbers of the result. A quarter of the
// multiplications is left. A few tiles go through all of it at once, so that what lies between the steps
// never leaves the second cache.
//
// An item is some rows of tiles. A number of the result is computed the same way in any of them.
#pragma once

#include <vector>

#include "tessera/runtime/cpu/convolution.h"

namespace tessera::runtime::cpu {

/// The points are 0, these two on both sides of it, and infinity: sums lose less than those of 1 and 2 do.
inline constexpr float near_point = 0.625f, far_point = 1.5f;

/// What is done with vectors of channels, compiled once per instruction set beside our own matrix product.
struct WinogradKernel {
  /// Some tiles side by side: their rows, vectors of channels one behind the other, and their points.
  struct Tiles {
    std::int64_t count = 0;
    float* rows = nullptr;  ///< six of the source, or four of the result
    std::int64_t row_stride = 0;
    float* points = nullptr;
    std::int64_t tile_stride = 0, point_stride = 0;
  };
  /// One row of some channels of an image, as it lies and as vectors of channels.
  struct Row {
    float* apart = nullptr;
    std::int64_t channel_stride = 0;
    std::int64_t channels = 0;  ///< up to the lanes of a vector; zeros stand for others
    std::int64_t columns = 0;
    float* together = nullptr;
  };

  std::int64_t lanes = 0;
  void (*source_points)(const Tiles& tiles) = nullptr;
  void (*result_numbers)(const Tiles& tiles) = nullptr;
  void (*put_together)(const Row& row) = nullptr;
  /// Writes all channels in whole vectors of columns.
  void (*put_apart)(const Row& row) = nullptr;
};

/// The one for this processor.
[[nodiscard]] const WinogradKernel& winograd_kernel();

namespace gemm_baseline {
[[nodiscard]] WinogradKernel winograd_kernel();
}
namespace gemm_v3 {
[[nodiscard]] WinogradKernel winograd_kernel();
}
namespace gemm_v4 {
[[nodiscard]] WinogradKernel winograd_kernel();
}

/// Immutable: any number of threads may run it.
class Winograd {
 public:
  /// Whether it computes such convolutions, and faster than a library whose steps are done for all tiles in
  /// turn. REQUIRES a spec that may be computed by Winograd's method.
  [[nodiscard]] static bool suits(const ConvolutionSpec& spec);

  /// REQUIRES suits(), and a result that is not empty.
  explicit Winograd(const ConvolutionSpec& spec);

  [[nodiscard]] std::int64_t items() const { return items_; }
  [[nodiscard]] std::size_t scratch_bytes() const;
  /// The points of the filters, [point][panel of filters][channel][filter].
  [[nodiscard]] std::vector<float> pack(const float* weights) const;
  /// One item on the calling thread; `filters` are those of pack().
  void run(const ConvolutionOperands& operands, const float* filters, std::int64_t item,
           float* scratch) const;

 private:
  /// Tiles side by side in one image.
  struct Strip {
    std::int64_t image, row, column;    ///< of the result
    std::int64_t rows, columns, tiles;  ///< what there is of the result, and its tiles
  };
  /// The parts of the scratch memory.
  struct Memory {
    float *source_points, *products, *source_rows, *result_rows, *apart, *workspace;
  };

  [[nodiscard]] Memory memory(float* scratch) const;
  [[nodiscard]] Strip strip(std::int64_t number) const;
  void read(const float* source, const Strip& strip, const Memory& memory, std::int64_t tile) const;
  void read_rows(const float* channel, std::int64_t channels, const Strip& strip, float* rows) const;
  void multiply(const float* filters, std::int64_t tiles, const Memory& memory) const;
  void write(const ConvolutionOperands& operands, const Strip& strip, const Memory& memory,
             std::int64_t tile) const;
  void finish(const ConvolutionOperands& operands, const Strip& strip, std::int64_t filter,
              const Memory& memory) const;

  ConvolutionSpec spec_;
  Pair output_;
  std::int64_t lanes_;
  std::int64_t channels_, filters_;  ///< with room for whole vectors, and for whole panels
  std::int64_t strip_tiles_ = 0, strips_of_row_ = 0, rows_of_tiles_ = 0;
  std::int64_t strips_ = 0, items_ = 0;
  std::int64_t source_stride_ = 0, product_stride_ = 0;  ///< from point to point
  std::int64_t source_row_ = 0, result_row_ = 0, apart_row_ = 0;
};

}  // namespace tessera::runtime::cpu
