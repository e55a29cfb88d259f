// Products of 16-bit floats: computed in f32, rounded once. Weights that stay are made wider and packed once.
#include "tessera/kernel/block_loops.h"
#include "tessera/runtime/cpu/element_offset.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// A batch of matrices as f32 without gaps; one for all if they are the same.
class WideMatrices {
 public:
  /// `result` has the axes that the operand is broadcast to, before the last two.
  Result<void> prepare(const op::Array& array, const op::Extents& result) {
    dtype_ = array.dtype;
    op::Extents shape = result;
    std::copy(array.shape().end() - 2, array.shape().end(), shape.end() - 2);
    seen_ = op::broadcast_layout(array.layout, shape);
    const std::size_t batch_axes = shape.size() - 2;
    is_shared_ = true;
    for (std::size_t a = 0; a < batch_axes; ++a)
      is_shared_ = is_shared_ && (seen_.shape[a] == 1 || seen_.strides[a] == 0);
    if (is_shared_)
      for (std::size_t a = 0; a < batch_axes; ++a) seen_.shape[a] = 1;
    columns_ = shape.back();
    rows_ = 1;
    for (std::size_t a = 0; a + 1 < seen_.rank(); ++a) rows_ *= seen_.shape[a];
    return {};
  }

  [[nodiscard]] MatrixForm form() const {
    const std::int64_t rows = seen_.shape[seen_.rank() - 2];
    return {is_shared_ ? 0 : rows * columns_, columns_, 1};
  }
  [[nodiscard]] bool is_shared() const { return is_shared_; }
  /// Until they are read again.
  void free() { numbers_ = {}; }

  const float* widen(const op::Array& array) {
    numbers_.resize(static_cast<std::size_t>(rows_ * columns_));
    const auto load = kernel::block_loops().load[static_cast<std::size_t>(dtype_)];
    op::Layout rows = seen_;
    const std::int64_t stride = rows.strides.back();
    rows.shape.pop_back();
    rows.strides.pop_back();
    for (std::int64_t row = 0; row < rows_; ++row)
      load(array.at(element_offset(rows, row)), stride, numbers_.data() + row * columns_,
           static_cast<std::size_t>(columns_));
    return numbers_.data();
  }

 private:
  op::Dtype dtype_ = op::Dtype::f16;
  op::Layout seen_;
  bool is_shared_ = false;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<float> numbers_;
};

/// Weights as f32, packed. Which products they serve, a product says (accepts).
struct PackedHalves final : Derived {
  PackedMatrix matrix;
  WeightPlace from;

  explicit PackedHalves(const op::Array& array) : from(array) {}
  [[nodiscard]] std::size_t byte_size() const override { return matrix.byte_size(); }
};

class HalfMatmulCall final : public LibraryCall {
 public:
  HalfMatmulCall(const LibraryForm& form, Libraries& libraries)
      : form_(form), libraries_(libraries), packed_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    const op::Extents& shape = result.shape();
    const std::size_t rank = shape.size();
    spec_.rows = shape[rank - 2];
    spec_.columns = shape[rank - 1];
    spec_.depth = inputs[form_.left].shape().back();
    for (std::size_t i = 0; i + 2 < rank; ++i) spec_.batch *= shape[i];
    TESSERA_TRY(a_.prepare(inputs[form_.left], shape));
    TESSERA_TRY(b_.prepare(inputs[form_.right], shape));
    spec_.a = a_.form();
    spec_.b = b_.form();
    spec_.c = {spec_.rows * spec_.columns, spec_.columns, 1};
    products_.resize(static_cast<std::size_t>(result.size()));
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    result_ = launch.results[0];
    operands_.a = a_.widen(launch.inputs[form_.left]);
    operands_.c = products_.data();
    return choose_weights(launch.inputs[form_.right], launch.weights);
  }

  [[nodiscard]] std::int64_t items() const override { return product_->items(); }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    return product_->run(operands_, range, scratch);
  }

  void end() override {
    const kernel::LoopTable& loops = kernel::block_loops();
    const auto dtype = static_cast<std::size_t>(result_.dtype);
    const std::size_t wide = kernel::wide_index(op::Dtype::f32);
    loops.cast[wide][dtype](products_.data(), nullptr, nullptr, products_.data(), products_.size());
    loops.store[dtype](products_.data(), result_.at(result_.layout.offset), 1, products_.size());
    packed_.end();
  }

  [[nodiscard]] std::string implementation() const override { return product_->implementation(); }

 private:
  Result<void> use(WeightForm weights) {
    if (product_ != nullptr && spec_.weights == weights) return {};
    spec_.weights = weights;
    product_ = TESSERA_TRY(libraries_.products.get(spec_));
    return {};
  }

  /// What was there in the launch before is packed: that takes about as long as a product with few rows.
  Result<void> choose_weights(const op::Array& array, const WeightSource& source) {
    const bool stay = packed_.begin(source, array) || source.is_constant;
    const bool can_pack = spec_.batch == 1 || b_.is_shared();
    const auto bytes = spec_.depth * spec_.columns * static_cast<std::int64_t>(sizeof(float));
    if (can_pack && packed_.get() == nullptr && !find_packed(array) && stay && packed_.has_room(bytes))
      TESSERA_TRY(pack_weights(array));
    operands_.packed = packed_.get() == nullptr ? nullptr : &packed_.get()->matrix;
    operands_.b = packed_.get() == nullptr ? b_.widen(array) : nullptr;
    return use(packed_.get() == nullptr ? WeightForm::plain : WeightForm::packed);
  }

  bool find_packed(const op::Array& array) {
    return packed_.find([&](const PackedHalves& packed) {
      return packed.from.is_of(array) && use(WeightForm::packed) && product_->accepts(packed.matrix);
    });
  }

  Result<void> pack_weights(const op::Array& array) {
    TESSERA_TRY(use(WeightForm::packed));
    auto made = std::make_shared<PackedHalves>(array);
    made->matrix = TESSERA_TRY(product_->pack(b_.widen(array)));
    b_.free();
    packed_.use(std::move(made));
    return {};
  }

  const LibraryForm& form_;
  Libraries& libraries_;
  MatmulSpec spec_;
  WideMatrices a_, b_;
  op::Array result_;
  std::vector<float> products_;  ///< before they are rounded
  std::shared_ptr<const Matmul> product_;
  MatmulOperands operands_;
  WeightsAs<PackedHalves> packed_;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_half_matmul_call(const LibraryForm& form,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           Libraries& libraries) {
  auto out = std::make_unique<HalfMatmulCall>(form, libraries);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
