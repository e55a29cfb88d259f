// Matrix products of f32 by oneDNN, or by our own blocked product where oneDNN is missing or has no fast
// code.
//
//   const auto matmul = TESSERA_TRY(Matmul::create(spec));
//   const auto packed = TESSERA_TRY(matmul->pack(weights));  // once, if they are constant
//   TESSERA_TRY(matmul->run({.a = x, .packed = &packed, .c = y}, {0, matmul->items()}, scratch));
//
// The items of a product are independent: threads may run disjoint ranges at once, each with its own scratch.
// How a product is cut into items depends on its sizes alone, so results do not depend on the threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/kernel/interpreter.h"
#include "tessera/runtime/cpu/blocked_gemm.h"
#include "tessera/runtime/cpu/onednn.h"

namespace tessera::runtime::cpu {

/// Where the elements of a batch of matrices lie; strides count elements.
struct MatrixForm {
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;

  bool operator==(const MatrixForm&) const = default;
};

/// c [batch, rows, columns] = epilogue(a [batch, rows, depth] · b [batch, depth, columns]). A transposed
/// operand is one with other strides, a shared one has a batch stride of 0. The bias has one number per
/// column, or per row if the epilogue says so.
struct MatmulSpec {
  std::int64_t batch = 1, rows = 0, columns = 0, depth = 0;
  MatrixForm a, b, c;
  MatrixForm residual;  ///< of a separate one
  WeightForm weights = WeightForm::plain;
  Epilogue epilogue;
  /// If not 0: items are to be so many rows of a product that is one matrix, each with all its columns.
  std::int64_t row_block = 0;

  bool operator==(const MatmulSpec&) const = default;
  [[nodiscard]] Hash128 hash() const;
};

/// Whose code computes.
enum class ProductLibrary : std::uint8_t {
  best,     ///< oneDNN where it can, else our own
  onednn,   ///< or an error
  blocked,  ///< our own
};

/// A constant `b`, copied for products of any number of rows.
class PackedMatrix {
 public:
  [[nodiscard]] std::size_t byte_size() const;

 private:
  friend class Matmul;
  std::int64_t columns_ = 0, depth_ = 0;
  std::optional<PackedWeights> whole_;  ///< oneDNN's
  std::vector<PackedWeights> panels_;   ///< oneDNN's by panel of columns; parts of the whole, if there is one
  MemoryBlock block_;                   ///< our own
};

struct MatmulOperands {
  const float* a = nullptr;
  const float* b = nullptr;              ///< if weights are plain
  const PackedMatrix* packed = nullptr;  ///< if weights are packed
  float* c = nullptr;                    ///< does not overlap a, b or the bias
  float* product = nullptr;              ///< if it is kept; lies as c does, and overlaps nothing
  const float* bias = nullptr;
  float scale = 1.0f;
  const float* residual = nullptr;  ///< if separate; does not overlap c
};

/// How a product is cut into items.
struct MatmulSplit {
  std::int64_t batch = 1, rows = 1, columns = 1;  ///< of one item
  std::int64_t batch_blocks = 0, row_blocks = 0, panels = 0;

  [[nodiscard]] std::int64_t items() const { return batch_blocks * row_blocks * panels; }
};

/// Immutable: any number of threads may run it.
class Matmul {
 public:
  /// Fails with code `unsupported` if the rows of c have gaps between their elements, packed weights are not
  /// shared by the batch, or `library` cannot compute it.
  [[nodiscard]] static Result<std::shared_ptr<const Matmul>> create(
      const MatmulSpec& spec, ProductLibrary library = ProductLibrary::best);

  [[nodiscard]] const MatmulSpec& spec() const { return spec_; }
  [[nodiscard]] std::int64_t items() const { return split_.items(); }
  /// Rows of an item, if the product is one matrix and items have all its columns; else 0.
  [[nodiscard]] std::int64_t row_block() const {
    return spec_.batch == 1 && split_.panels == 1 ? split_.rows : 0;
  }
  /// What computes it: "brg:avx512_core", "blocked".
  [[nodiscard]] const std::string& implementation() const { return implementation_; }
  /// REQUIRES packed weights in the spec.
  [[nodiscard]] Result<PackedMatrix> pack(const float* b) const;
  /// Whether weights that another product packed serve this one.
  [[nodiscard]] bool accepts(const PackedMatrix& packed) const;
  /// Computes some of the items on the calling thread. REQUIRES accepts(packed), if weights are packed.
  [[nodiscard]] Result<void> run(const MatmulOperands& operands, kernel::ItemRange range,
                                 kernel::Scratch& scratch) const;

 private:
  /// One item: where it begins and how large it is.
  struct Item {
    std::int64_t batch, row, column, panel;
    std::int64_t batch_count, rows, columns;
  };

  explicit Matmul(const MatmulSpec& spec) : spec_(spec) {}
  Result<void> use_onednn();
  void forget_onednn();
  [[nodiscard]] bool is_better_blocked() const;
  [[nodiscard]] bool has_few_rows(double work) const;
  [[nodiscard]] bool has_few_turned_weights() const;
  Result<void> make_primitives(const OneDnn& onednn);
  [[nodiscard]] MatmulRequest request(const Item& item) const;
  [[nodiscard]] Item item(std::int64_t number) const;
  [[nodiscard]] std::size_t variant(const Item& item) const;
  [[nodiscard]] const PackedWeights& weights_of(const PackedMatrix& packed, const Item& item) const;
  [[nodiscard]] Result<void> pack_onednn(const float* b, PackedMatrix& out) const;
  Result<void> run_onednn(const MatmulOperands& operands, const Item& item, std::byte* scratch) const;
  /// What oneDNN does behind a product; the rest is done by finish_own.
  [[nodiscard]] Epilogue library_epilogue() const;
  void finish_own(const MatmulOperands& operands, const Item& item, float* product) const;
  /// From the product that was kept to the result.
  void finish_kept(const MatmulOperands& operands, const Item& item) const;
  /// Where what is multiplied goes.
  [[nodiscard]] float* product_of(const MatmulOperands& operands) const {
    return spec_.epilogue.keeps_product ? operands.product : operands.c;
  }
  void copy_in(const MatmulOperands& operands, const Item& item, float* to) const;
  void copy_out(const MatmulOperands& operands, const Item& item, const float* tile) const;
  [[nodiscard]] GemmBlock block_of(const MatmulOperands& operands, const Item& item,
                                   std::int64_t batch) const;
  void run_blocked(const MatmulOperands& operands, const Item& item, float* scratch) const;
  void finish(const MatmulOperands& operands, const Item& item, std::int64_t batch, float* product,
              float* workspace) const;
  [[nodiscard]] bool is_blocked() const { return primitives_[0] == nullptr; }

  MatmulSpec spec_;
  MatmulSplit split_;
  std::string implementation_;
  std::size_t scratch_bytes_ = 0;
  /// oneDNN is fast only if its result has no gaps: where it has, a tile of scratch memory gets it first.
  bool uses_tile_ = false;
  std::size_t tile_bytes_ = 0;
  /// What is added is copied to where the result will be: oneDNN is fast only if it lies as the result does.
  bool copies_residual_ = false;
  /// The activation, and what is added behind it, are not oneDNN's (is_own_activation).
  bool finishes_own_ = false;
  /// By whether an item is the last of the batch, the last of its rows, the last of its columns: those may be
  /// smaller. None: our own code computes.
  std::unique_ptr<const Primitive> primitives_[8];
};

}  // namespace tessera::runtime::cpu
