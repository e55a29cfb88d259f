// oneDNN, opened at run time: matrix products and convolutions of f32 as primitives that are made once and
// run often, each on the thread that calls. Its header is needed to build this; without it `open` says so.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tessera/base/result.h"
#include "tessera/base/small_vector.h"
#include "tessera/runtime/cpu/epilogue.h"

namespace tessera::runtime::cpu {

using Sizes = SmallVector<std::int64_t, 5>;

/// Where the elements of an operand lie; strides count elements.
struct OperandForm {
  Sizes sizes;
  Sizes strides;
};

/// Whether weights are read as they are, or from a copy in the order that the library likes best.
enum class WeightForm : std::uint8_t { plain, packed };

/// [batch, rows, depth] by [batch, depth, columns]; the batch of an operand may be 1. The bias has one number
/// per column, or per row if the epilogue says so.
struct MatmulRequest {
  OperandForm a, b, c;
  OperandForm residual;
  WeightForm weights = WeightForm::plain;
  Epilogue epilogue;
};

/// Whether a convolution may be computed by Winograd's method: twice as fast, less exact.
enum class ConvolutionMethod : std::uint8_t { exact, winograd };

/// Sources [N, C, H, W] by weights [groups, O / groups, C / groups, KH, KW], which are always packed.
struct ConvolutionRequest {
  OperandForm source, destination;
  Sizes weights;
  Sizes strides, dilations;         ///< of 2 axes; a dilation of 1 leaves no gaps
  Sizes padding_low, padding_high;  ///< of 2 axes
  ConvolutionMethod method = ConvolutionMethod::exact;
  Epilogue epilogue;  ///< without scale; the residual lies as the destination does
};

/// A copy of weights for certain primitives. Immutable: any number of threads may read it.
class PackedWeights {
 public:
  struct State;
  explicit PackedWeights(std::unique_ptr<State> state);
  PackedWeights(PackedWeights&&) noexcept;
  PackedWeights& operator=(PackedWeights&&) noexcept;
  ~PackedWeights();

  [[nodiscard]] std::size_t byte_size() const;
  /// Whether neighbouring columns lie together, so that a panel of them is part of the whole.
  [[nodiscard]] bool has_panels() const;
  /// Some of the columns, without a copy: the whole must outlive them. REQUIRES has_panels(), and a first
  /// column that is a multiple of 64.
  [[nodiscard]] Result<PackedWeights> panel(std::int64_t column, std::int64_t columns) const;
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// The operands of one run; those that the primitive does not have are not looked at.
struct PrimitiveOperands {
  const float* source = nullptr;
  const float* weights = nullptr;         ///< if they are plain
  const PackedWeights* packed = nullptr;  ///< if they are packed
  float* destination = nullptr;
  const float* bias = nullptr;
  const float* scale = nullptr;  ///< one number
  const float* residual = nullptr;
};

/// Immutable: any number of threads may run it at once, each with its own scratch memory.
class Primitive {
 public:
  struct State;
  explicit Primitive(std::unique_ptr<State> state);
  ~Primitive();

  /// How the library computes it: "brg:avx512_core".
  [[nodiscard]] const std::string& implementation() const;
  [[nodiscard]] std::size_t scratch_bytes() const;
  /// Copies weights that lie as `from` says. Only if they are packed. `from` may have more columns than this
  /// primitive if those have panels.
  [[nodiscard]] Result<PackedWeights> pack(const float* weights, const OperandForm& from) const;
  /// Whether the weights that it packs have panels.
  [[nodiscard]] bool packs_panels() const;
  /// Whether weights that `other` packs serve this primitive too.
  [[nodiscard]] bool shares_weights_with(const Primitive& other) const;
  /// Whether they lie in the order that this primitive reads.
  [[nodiscard]] bool accepts(const PackedWeights& packed) const;
  /// On the calling thread alone. `scratch` is aligned to 64 and has scratch_bytes().
  [[nodiscard]] Result<void> run(const PrimitiveOperands& operands, std::byte* scratch) const;

 private:
  std::unique_ptr<State> state_;
};

/// (a - a_zero) by (b - b_zero), row-major: rows × depth without gaps by depth × columns. Sums wrap as 32-bit
/// integers do.
struct ByteProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const std::uint8_t* a = nullptr;
  std::uint8_t a_zero = 0;
  const std::int8_t* b = nullptr;
  std::int64_t b_stride = 0;
  std::int8_t b_zero = 0;
  std::int32_t* c = nullptr;
  std::int64_t c_stride = 0;
};

/// Thread-safe.
class OneDnn {
 public:
  /// The system's library. Tried once; the error says what was looked for.
  [[nodiscard]] static Result<const OneDnn*> open();

  /// Fail with code `unsupported` if the library has no fast code for it: its reference code is never taken.
  [[nodiscard]] Result<std::unique_ptr<const Primitive>> matmul(const MatmulRequest& request) const;
  [[nodiscard]] Result<std::unique_ptr<const Primitive>> convolution(const ConvolutionRequest& request) const;

  /// Whether products of bytes keep every bit: without an instruction for them the library saturates sums of
  /// two.
  [[nodiscard]] static bool multiplies_bytes_exactly();
  /// The library makes its code for products of bytes with the first of them, which takes milliseconds: this
  /// is one that nobody needs.
  void make_byte_code() const;
  /// On the calling thread alone.
  [[nodiscard]] Result<void> multiply(const ByteProduct& product) const;

  /// "2.6.3"
  [[nodiscard]] const std::string& version() const { return version_; }

  struct Library;
  explicit OneDnn(const Library& library, std::string version)
      : library_(&library), version_(std::move(version)) {}

 private:
  const Library* library_;
  std::string version_;
};

}  // namespace tessera::runtime::cpu
