// Matrix products as library calls: how the operands of `matmul` lie, and which weights are packed.
#include <algorithm>

#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/matmul_split.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t few_unpacked_rows = 2;
/// Numbers that no cache holds.
constexpr std::int64_t large_weights = std::int64_t{1} << 22;

/// The distance between neighbours when all axes before the last two are counted as one; nothing if it is not
/// the same everywhere.
std::optional<std::int64_t> batch_stride(const op::Layout& layout) {
  const std::size_t axes = layout.rank() - 2;
  std::optional<std::int64_t> stride;
  std::int64_t inner = 1;  // how many neighbours one step along the axis passes
  for (std::size_t a = axes; a-- > 0; inner *= layout.shape[a]) {
    if (layout.shape[a] == 1) continue;
    if (!stride) {
      if (layout.strides[a] % inner != 0) return std::nullopt;
      stride = layout.strides[a] / inner;
    }
    if (layout.strides[a] != *stride * inner) return std::nullopt;
  }
  return stride.value_or(0);
}

std::optional<MatrixForm> form_of(const op::Layout& layout) {
  const auto batch = batch_stride(layout);
  if (!batch) return std::nullopt;
  const std::size_t rank = layout.rank();
  return MatrixForm{*batch, layout.strides[rank - 2], layout.strides[rank - 1]};
}

/// Seen with the axes of the result before the last two.
op::Layout with_batch(const op::Layout& layout, const op::Extents& result) {
  op::Extents shape(result.begin(), result.end());
  std::copy(layout.shape.end() - 2, layout.shape.end(), shape.end() - 2);
  return op::broadcast_layout(layout, shape);
}

float* elements_of(const op::Array& result) {
  return reinterpret_cast<float*>(result.at(result.layout.offset));
}

/// A matrix operand: read as it lies if its matrices lie at equal distances, else copied.
class MatrixOperand {
 public:
  Result<MatrixForm> prepare(const op::Layout& layout, const op::Extents& result) {
    seen_ = with_batch(layout, result);
    if (const auto form = form_of(seen_)) return *form;
    is_copied_ = true;
    TESSERA_TRY(dense_.prepare(seen_));
    return *form_of(dense_.layout());
  }
  const float* get(const op::Array& array) {
    if (is_copied_) return dense_.get(array);
    return reinterpret_cast<const float*>(array.at(seen_.offset));
  }

 private:
  op::Layout seen_;
  DenseOperand dense_;
  bool is_copied_ = false;
};

/// Packed weights with what they were packed from. Which products they serve, a product says (accepts).
struct PackedProduct final : Derived {
  PackedMatrix matrix;
  const float* from = nullptr;
  MatrixForm form;
  std::int64_t depth = 0, columns = 0;

  [[nodiscard]] std::size_t byte_size() const override { return matrix.byte_size(); }
  [[nodiscard]] bool is_of(const float* weights, const MatmulSpec& spec) const {
    return from == weights && form == spec.b && depth == spec.depth && columns == spec.columns;
  }
};

class MatmulCall final : public LibraryCall {
 public:
  MatmulCall(const LibraryForm& form, Libraries& libraries, std::int64_t row_block)
      : form_(form), libraries_(libraries), row_block_(row_block), packed_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    const op::Extents& shape = result.shape();
    const std::size_t rank = shape.size();
    spec_.rows = shape[rank - 2];
    spec_.columns = shape[rank - 1];
    spec_.depth = inputs[form_.left].shape().back();
    for (std::size_t i = 0; i + 2 < rank; ++i) spec_.batch *= shape[i];
    spec_.epilogue = form_.epilogue;
    spec_.a = TESSERA_TRY(a_.prepare(inputs[form_.left].layout, shape));
    spec_.b = TESSERA_TRY(b_.prepare(inputs[form_.right].layout, shape));
    spec_.c = *form_of(op::contiguous(shape));
    if (form_.bias != no_input) TESSERA_TRY(bias_.prepare(inputs[form_.bias].layout));
    if (form_.residual != no_input) {
      spec_.residual = spec_.c;
      TESSERA_TRY(residual_.prepare(inputs[form_.residual].layout));
    }
    can_pack_ = (spec_.batch == 1 || spec_.b.batch_stride == 0) && !is_read_in_place();
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    set_if_other(operands_.a, a_.get(launch.inputs[form_.left]));
    set_if_other(operands_.b, b_.get(launch.inputs[form_.right]));
    set_if_other(operands_.c, elements_of(launch.results[form_.result]));
    if (form_.product != no_result)
      set_if_other(operands_.product, elements_of(launch.results[form_.product]));
    if (form_.bias != no_input) set_if_other(operands_.bias, bias_.get(launch.inputs[form_.bias]));
    if (form_.residual != no_input)
      set_if_other(operands_.residual, residual_.get(launch.inputs[form_.residual]));
    set_if_other(operands_.scale, scale_of(form_, launch));
    return choose_weights(launch.inputs[form_.right], launch.weights);
  }

  [[nodiscard]] std::int64_t items() const override { return product_->items(); }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    return product_->run(operands_, range, scratch);
  }
  void end() override { packed_.end(); }
  [[nodiscard]] std::int64_t row_block() const override { return product_->row_block(); }
  [[nodiscard]] std::string implementation() const override { return product_->implementation(); }

 private:
  /// Large weights that few rows multiply: waiting for memory takes as long either way, and a copy of them
  /// takes as much memory again.
  [[nodiscard]] bool is_read_in_place() const {
    return spec_.batch * spec_.rows <= few_unpacked_rows && spec_.b.column_stride == 1 &&
           spec_.depth * spec_.columns >= large_weights;
  }

  /// Weights that are not packed are put in order by every item: then there are no more blocks of rows than
  /// the product has anyway.
  Result<void> use(WeightForm weights) {
    if (product_ != nullptr && spec_.weights == weights) return {};
    spec_.weights = weights;
    spec_.row_block = 0;
    if (weights == WeightForm::packed)
      spec_.row_block = row_block_ > 0 ? row_block_ : large_row_block(spec_, libraries_.threads);
    product_ = TESSERA_TRY(libraries_.products.get(spec_));
    return {};
  }

  /// Packing takes about as long as one product with few rows: worth it for weights that were there in the
  /// launch before.
  Result<void> choose_weights(const op::Array& array, const WeightSource& source) {
    const bool stay = packed_.begin(source, array) || source.is_constant;
    if (can_pack_ && packed_.get() == nullptr && !find_packed() && stay && packed_.has_room(weight_bytes()))
      TESSERA_TRY(pack_weights());
    set_if_other(operands_.packed, packed_.get() == nullptr ? nullptr : &packed_.get()->matrix);
    return use(packed_.get() == nullptr ? WeightForm::plain : WeightForm::packed);
  }

  [[nodiscard]] std::int64_t weight_bytes() const {
    return spec_.depth * spec_.columns * static_cast<std::int64_t>(sizeof(float));
  }

  bool find_packed() {
    return packed_.find([&](const PackedProduct& packed) {
      return packed.is_of(operands_.b, spec_) && use(WeightForm::packed) && product_->accepts(packed.matrix);
    });
  }

  Result<void> pack_weights() {
    TESSERA_TRY(use(WeightForm::packed));
    auto made = std::make_shared<PackedProduct>();
    made->matrix = TESSERA_TRY(product_->pack(operands_.b));
    made->from = operands_.b;
    made->form = spec_.b;
    made->depth = spec_.depth;
    made->columns = spec_.columns;
    packed_.use(std::move(made));
    return {};
  }

  const LibraryForm& form_;
  Libraries& libraries_;
  const std::int64_t row_block_;
  MatmulSpec spec_;
  MatrixOperand a_, b_;
  DenseOperand bias_, residual_;
  bool can_pack_ = false;
  std::shared_ptr<const Matmul> product_;
  MatmulOperands operands_;
  WeightsAs<PackedProduct> packed_;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_matmul_call(const LibraryForm& form,
                                                      std::span<const op::Array> inputs,
                                                      std::span<const op::Array> results,
                                                      Libraries& libraries, std::int64_t row_block) {
  auto out = std::make_unique<MatmulCall>(form, libraries, row_block);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
