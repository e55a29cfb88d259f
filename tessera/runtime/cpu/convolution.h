// Convolutions of f32 over two axes, by oneDNN, or by our own matrix product where oneDNN is missing or has
// no fast code, or our own Winograd's method (winograd.h). Used as Matmul is; weights are always packed.
//
// An item is a block of rows of one image of the result, for some of its filters. How items are cut depends
// on the sizes alone.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tessera/runtime/cpu/matmul.h"

namespace tessera::runtime::cpu {

/// Along the two spatial axes: height, width.
using Pair = std::array<std::int64_t, 2>;

/// Sources [batch, channels, size…], weights [filters, channels / groups, window…], a result
/// [batch, filters, output size…]: all row-major without gaps. The bias has one number per filter.
struct ConvolutionSpec {
  std::int64_t batch = 1, channels = 0, filters = 0, groups = 1;
  Pair size{}, window{};
  Pair strides{1, 1}, dilations{1, 1};
  Pair padding_low{}, padding_high{};
  ConvolutionMethod method = ConvolutionMethod::exact;
  Epilogue epilogue;  ///< without a scale; a separate residual lies as the result does

  bool operator==(const ConvolutionSpec&) const = default;
  [[nodiscard]] Hash128 hash() const;
  /// REQUIRES that the window fits.
  [[nodiscard]] Pair output_size() const;
};

class Winograd;

/// Weights, copied for a convolution.
class PackedFilters {
 public:
  [[nodiscard]] std::size_t byte_size() const;

 private:
  friend class Convolution;
  /// In what order: oneDNN's, that of points of Winograd's method, or as they were.
  enum class Order : std::uint8_t { library, points, plain };

  Order order_ = Order::plain;
  std::int64_t filters_ = 0, depth_ = 0, groups_ = 1;
  std::vector<std::int64_t> firsts_;   ///< by copy: its first filter
  std::vector<PackedWeights> copies_;  ///< oneDNN's
  std::vector<float> own_;             ///< our own
};

struct ConvolutionOperands {
  const float* source = nullptr;
  const PackedFilters* filters = nullptr;
  float* destination = nullptr;  ///< does not overlap the source
  const float* bias = nullptr;
  const float* residual = nullptr;  ///< if separate; does not overlap the destination
};

/// Immutable: any number of threads may run it.
class Convolution {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const Convolution>> create(
      const ConvolutionSpec& spec, ProductLibrary library = ProductLibrary::best);

  [[nodiscard]] const ConvolutionSpec& spec() const { return spec_; }
  [[nodiscard]] std::int64_t items() const;
  /// What computes it: "jit_wino_4x3:avx512_core", "winograd", "blocked".
  [[nodiscard]] const std::string& implementation() const { return implementation_; }
  [[nodiscard]] Result<PackedFilters> pack(const float* weights) const;
  /// Whether filters that another convolution packed serve this one.
  [[nodiscard]] bool accepts(const PackedFilters& packed) const;
  /// Computes some of the items on the calling thread. REQUIRES accepts(*operands.filters).
  [[nodiscard]] Result<void> run(const ConvolutionOperands& operands, kernel::ItemRange range,
                                 kernel::Scratch& scratch) const;

 private:
  /// One item: its place in the result, and the rows of the source that it reads.
  struct Item {
    std::int64_t image, images, panel, row, rows;
    std::int64_t filter, filters;
    std::int64_t source_row, source_rows;
    std::int64_t padding_low, padding_high;  ///< of the rows
  };
  /// A primitive serves all items of its size and padding.
  struct Variant {
    Item item;
    std::unique_ptr<const Primitive> primitive;
  };

  /// A copy of the weights of a panel, in the order that a variant reads.
  struct Copy {
    std::int64_t panel;
    std::uint32_t variant;
  };
  /// What computes a panel and block of rows.
  struct Block {
    std::uint32_t variant, copy;
  };

  explicit Convolution(const ConvolutionSpec& spec) : spec_(spec), output_(spec.output_size()) {}
  void cut();
  [[nodiscard]] PackedFilters::Order order() const;
  [[nodiscard]] Item item(std::int64_t number) const;
  void use_winograd();
  Result<void> make_primitives(const OneDnn& onednn);
  Result<std::uint32_t> variant_for(const Item& item, const OneDnn& onednn);
  std::uint32_t copy_for(std::int64_t panel, std::uint32_t variant);
  [[nodiscard]] ConvolutionRequest request(const Item& item) const;
  [[nodiscard]] OperandForm filters_form(std::int64_t filters) const;
  Result<void> run_onednn(const ConvolutionOperands& operands, const Item& item, std::size_t block,
                          std::byte* scratch) const;

  // our own: a matrix product of the weights by the windows, side by side as columns
  void prepare_blocked();
  void run_blocked(const ConvolutionOperands& operands, const Item& item, float* scratch) const;
  void multiply_windows(const ConvolutionOperands& operands, const Item& item, std::int64_t group,
                        std::int64_t position, std::int64_t count, float* scratch) const;
  /// The activation is not oneDNN's (is_own_activation).
  [[nodiscard]] bool finishes_own() const {
    const Epilogue& epilogue = spec_.epilogue;
    return is_own_activation(epilogue.activation) &&
           (epilogue.residual == Residual::none || epilogue.place == ResidualPlace::before_activation);
  }
  [[nodiscard]] std::int64_t depth() const {
    return spec_.channels / spec_.groups * spec_.window[0] * spec_.window[1];
  }

  ConvolutionSpec spec_;
  Pair output_;
  std::int64_t batch_blocks_ = 0, block_images_ = 1;
  std::int64_t panels_ = 1, panel_filters_ = 0;  ///< panels of filters
  std::int64_t row_blocks_ = 1, block_rows_ = 0;
  std::int64_t most_positions_ = 0;           ///< windows that our own product takes at once
  std::shared_ptr<const Winograd> winograd_;  ///< our own; null: another computes
  std::vector<Variant> variants_;
  std::vector<Copy> copies_;   ///< variants that read the same order share one
  std::vector<Block> blocks_;  ///< by panel and block of rows
  std::string implementation_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tessera::runtime::cpu
