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

/// Packed weights with what they were packed from.
struct PackedProduct final : Derived {
  PackedMatrix matrix;
  const float* from = nullptr;
  MatrixForm form;
  std::int64_t depth = 0, columns = 0;

  [[nodiscard]] bool is_of(const float* weights, const MatmulSpec& spec) const {
    return from == weights && form == spec.b && depth == spec.depth && columns == spec.columns;
  }
};

class MatmulCall final : public LibraryCall {
 public:
  MatmulCall(const LibraryForm& form, Libraries& libraries, std::int64_t row_block)
      : form_(form), libraries_(libraries), row_block_(row_block) {}

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
    const bool stay = last_weights_.stay(source, array) || source.is_constant;
    if (!stay && weights_ != nullptr) weights_ = nullptr;
    if (can_pack_ && weights_ == nullptr && (source.buffer != nullptr || source.is_constant))
      weights_ = known_weights(source);
    if (can_pack_ && weights_ == nullptr && stay) TESSERA_TRY(pack_weights(source));
    set_if_other(operands_.packed, weights_ == nullptr ? nullptr : &weights_->matrix);
    return use(weights_ == nullptr ? WeightForm::plain : WeightForm::packed);
  }

  std::shared_ptr<const PackedProduct> known_weights(const WeightSource& source) {
    const auto serves = [&](const Derived& derived) {
      const auto* packed = dynamic_cast<const PackedProduct*>(&derived);
      return packed != nullptr && packed->is_of(operands_.b, spec_);
    };
    auto found = source.is_constant ? libraries_.constants.find(operands_.b, serves)
                                    : source.buffer->find_derived(serves);
    if (found == nullptr || !use(WeightForm::packed)) return nullptr;
    auto packed = std::static_pointer_cast<const PackedProduct>(std::move(found));
    return product_->accepts(packed->matrix) ? packed : nullptr;
  }

  Result<void> pack_weights(const WeightSource& source) {
    TESSERA_TRY(use(WeightForm::packed));
    auto packed = std::make_shared<PackedProduct>();
    packed->matrix = TESSERA_TRY(product_->pack(operands_.b));
    packed->from = operands_.b;
    packed->form = spec_.b;
    packed->depth = spec_.depth;
    packed->columns = spec_.columns;
    weights_ = packed;
    if (source.is_constant)
      libraries_.constants.keep(operands_.b, packed);
    else if (source.buffer != nullptr)
      source.buffer->keep_derived(packed);
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
  std::shared_ptr<const PackedProduct> weights_;
  LastWeights last_weights_;
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
