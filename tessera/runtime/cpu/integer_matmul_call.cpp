// Matrix products of 32-bit integers, exactly. Those of quantised models are bytes, moved by a number
// (byte_matmul.h). Others are computed as f32: sums of products below 2^24 are exact, so the depth is cut
// where a sum could get larger, and the parts are added as integers. Numbers that are too large for this take
// plain loops.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <variant>

#include "tessera/runtime/cpu/byte_matmul.h"
#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/integer_bytes.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t most_exact = std::int64_t{1} << 24;
/// Shorter parts of the depth do not pay.
constexpr std::int64_t least_depth = 16;

/// Integers of 32 bits or bytes, without gaps and without a number that is taken from each. They are made
/// wider or f32 if they are asked for.
class IntegerOperand {
 public:
  Result<void> prepare(const op::Layout& layout, op::Dtype dtype, std::int32_t less) {
    shape_ = layout.shape;
    less_ = less;
    if (dtype == op::Dtype::i8) dense_.emplace<DenseArray<std::int8_t, op::Dtype::i8>>();
    if (dtype == op::Dtype::u8) dense_.emplace<DenseArray<std::uint8_t, op::Dtype::u8>>();
    return std::visit([&](auto& dense) { return dense.prepare(layout); }, dense_);
  }

  void read(const op::Array& array) {
    std::visit([&](auto& dense) { given_ = dense.get(array); }, dense_);
    const auto* plain = std::get_if<const std::int32_t*>(&given_);
    integers_ = plain != nullptr && less_ == 0 ? *plain : nullptr;
    has_floats_ = false;
  }

  /// As bytes, if a product takes them so.
  [[nodiscard]] std::optional<ByteMatrix> bytes() const {
    return std::visit(
        [&](const auto* given) { return ByteMatmul::right_of(std::span(given, element_count()), less_); },
        given_);
  }

  Result<void> make_integers() {
    if (integers_ != nullptr) return {};
    if (wide_.array().data == nullptr) wide_ = TESSERA_TRY(op::HostTensor::allocate(op::Dtype::i32, shape_));
    const std::span<std::int32_t> out = wide_.values<std::int32_t>();
    std::visit(
        [&](const auto* given) {
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = widened_without(given[i], less_);
        },
        given_);
    integers_ = out.data();
    return {};
  }

  Result<void> make_floats() {
    TESSERA_TRY(make_integers());
    if (has_floats_) return {};
    if (floats_.array().data == nullptr)
      floats_ = TESSERA_TRY(op::HostTensor::allocate(op::Dtype::f32, shape_));
    const std::span<float> out = floats_.values<float>();
    std::uint32_t bits = 0;  // of any of the sizes
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int32_t value = integers_[i];
      out[i] = static_cast<float>(value);
      bits |= static_cast<std::uint32_t>(value ^ (value >> 31));
    }
    // -2^k counts as 2^k - 1 above.
    largest_ = std::int64_t{1} << std::bit_width(bits);
    has_floats_ = true;
    return {};
  }

  // Once the integers are made, which those of 32 bits are that nothing is taken from:
  [[nodiscard]] const std::int32_t* integers() const { return integers_; }
  [[nodiscard]] std::span<const std::int32_t> all() const { return {integers_, element_count()}; }
  // Once the floats are made:
  [[nodiscard]] const float* floats() const { return floats_.values<float>().data(); }
  /// A power of two that no element exceeds in size.
  [[nodiscard]] std::int64_t largest() const { return largest_; }

 private:
  [[nodiscard]] std::size_t element_count() const {
    return static_cast<std::size_t>(op::element_count(shape_));
  }

  op::Extents shape_;
  std::int32_t less_ = 0;
  std::variant<DenseIntegers, DenseArray<std::int8_t, op::Dtype::i8>, DenseArray<std::uint8_t, op::Dtype::u8>>
      dense_;
  std::variant<const std::int32_t*, const std::int8_t*, const std::uint8_t*> given_;
  op::HostTensor wide_, floats_;
  const std::int32_t* integers_ = nullptr;
  bool has_floats_ = false;
  std::int64_t largest_ = 0;
};

/// Weights as bytes, without a number that is taken from each.
struct WeightBytes final : Derived {
  ByteMatrix matrix;
  WeightPlace from;
  std::int32_t less;

  WeightBytes(ByteMatrix made, const op::Array& array, std::int32_t taken)
      : matrix(std::move(made)), from(array), less(taken) {}
  [[nodiscard]] std::size_t byte_size() const override { return matrix.bytes.size(); }
};

class IntegerMatmulCall final : public LibraryCall {
 public:
  IntegerMatmulCall(const LibraryForm& form, Libraries& libraries)
      : form_(form), libraries_(libraries), right_bytes_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    const op::Extents& shape = result.shape();
    const std::size_t rank = shape.size();
    spec_.rows = shape[rank - 2];
    spec_.columns = shape[rank - 1];
    depth_ = inputs[form_.left].shape().back();
    for (std::size_t i = 0; i + 2 < rank; ++i) spec_.batch *= shape[i];
    is_shared_ = inputs[form_.right].rank() == 2;
    spec_.a = {spec_.rows * depth_, depth_, 1};
    spec_.b = {is_shared_ ? 0 : depth_ * spec_.columns, spec_.columns, 1};
    spec_.c = {spec_.rows * spec_.columns, spec_.columns, 1};
    TESSERA_TRY(a_.prepare(with_batch(inputs[form_.left].layout, shape), op::Dtype::i32, 0));
    const auto onednn = OneDnn::open();
    if (onednn && OneDnn::multiplies_bytes_exactly() && depth_ * result_size() > 0)
      bytes_.emplace(**onednn, ByteMatmulSizes{.batch = spec_.batch,
                                               .rows = spec_.rows,
                                               .columns = spec_.columns,
                                               .depth = depth_,
                                               .right_stride = spec_.b.batch_stride});
    const op::Array& right = inputs[form_.right];
    return b_.prepare(is_shared_ ? right.layout : with_batch(right.layout, shape), right.dtype,
                      form_.right_zero);
  }

  void read_constants(const LibraryLaunch& launch) override {
    if (launch.weights.is_constant) (void)read_weights(launch);
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    out_ = reinterpret_cast<std::int32_t*>(launch.results[0].at(launch.results[0].layout.offset));
    a_.read(launch.inputs[form_.left]);
    const bool stays = read_weights(launch);
    uses_bytes_ = right_bytes_.get() != nullptr && bytes_->read_left(a_.all());
    if (uses_bytes_) {
      bytes_->set_right(right_bytes_.get()->matrix);
      return {};
    }
    read_right(launch.inputs[form_.right]);
    TESSERA_TRY(a_.make_floats());
    TESSERA_TRY(b_.make_floats());
    return cut(stays || launch.weights.is_constant);
  }

  [[nodiscard]] std::int64_t items() const override {
    if (uses_bytes_) return bytes_->items();
    return is_exact_ ? (parts_ - 1) * product_->items() + last_->items() : 1;
  }

  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    if (uses_bytes_) return bytes_->run(out_, range);
    if (!is_exact_) return multiply_plainly(), Result<void>();
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      const std::int64_t part = std::min(item / product_->items(), parts_ - 1);
      const std::int64_t number = item - part * product_->items();
      const Matmul& product = part == parts_ - 1 ? *last_ : *product_;
      TESSERA_TRY(product.run(operands(part), {number, number + 1}, scratch));
    }
    return {};
  }

  void end() override {
    right_bytes_.end();
    if (uses_bytes_ || !is_exact_) return;
    const std::size_t count = static_cast<std::size_t>(result_size());
    const float* sums = sums_.values<float>().data();
    for (std::size_t i = 0; i < count; ++i) out_[i] = static_cast<std::int32_t>(sums[i]);
    for (std::int64_t part = 1; part < parts_; ++part) {
      sums += count;
      for (std::size_t i = 0; i < count; ++i)
        out_[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(out_[i]) +
                                            static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[i])));
    }
  }

  [[nodiscard]] std::string implementation() const override {
    return uses_bytes_ ? "bytes" : is_exact_ ? product_->implementation() : "loops";
  }

 private:
  /// Whether they are those of the launch before.
  bool read_weights(const LibraryLaunch& launch) {
    const op::Array& array = launch.inputs[form_.right];
    const bool stays = right_bytes_.begin(launch.weights, array);
    if (!stays) {
      is_right_read_ = false;
      may_be_bytes_ = bytes_.has_value();
    }
    if (right_bytes_.get() != nullptr || !may_be_bytes_) return stays;
    const bool is_known = right_bytes_.find(
        [&](const WeightBytes& one) { return one.from.is_of(array) && one.less == form_.right_zero; });
    if (!is_known) make_bytes(array);
    return stays;
  }

  void make_bytes(const op::Array& array) {
    read_right(array);
    auto made = b_.bytes();
    may_be_bytes_ = made.has_value();
    if (made) right_bytes_.use(std::make_shared<WeightBytes>(*std::move(made), array, form_.right_zero));
  }

  void read_right(const op::Array& array) {
    if (is_right_read_) return;
    b_.read(array);
    packed_.clear();
    is_right_read_ = true;
  }

  static op::Layout with_batch(const op::Layout& layout, const op::Extents& result) {
    op::Extents shape(result.begin(), result.end());
    std::copy(layout.shape.end() - 2, layout.shape.end(), shape.end() - 2);
    return op::broadcast_layout(layout, shape);
  }

  [[nodiscard]] std::int64_t result_size() const { return spec_.batch * spec_.rows * spec_.columns; }

  /// How many parts the depth is cut into follows from the sizes of the elements.
  Result<void> cut(bool packs) {
    const std::int64_t largest =
        a_.largest() < most_exact && b_.largest() < most_exact ? a_.largest() * b_.largest() : most_exact * 2;
    const std::int64_t most = most_exact / largest;
    is_exact_ = depth_ == 0 || most >= std::min(depth_, least_depth);
    if (!is_exact_) return {};
    const std::int64_t parts = std::max<std::int64_t>(1, depth_ == 0 ? 1 : (depth_ + most - 1) / most);
    const WeightForm weights = packs && is_shared_ ? WeightForm::packed : WeightForm::plain;
    if (product_ == nullptr || parts != parts_ || weights != spec_.weights) {
      parts_ = parts;
      spec_.weights = weights;
      packed_.clear();
      TESSERA_TRY(make_products());
    }
    return weights == WeightForm::packed && packed_.empty() ? pack() : Result<void>();
  }

  Result<void> make_products() {
    part_depth_ = (depth_ + parts_ - 1) / parts_;
    parts_ = part_depth_ == 0 ? 1 : (depth_ + part_depth_ - 1) / part_depth_;
    spec_.depth = part_depth_;
    product_ = TESSERA_TRY(libraries_.products.get(spec_));
    spec_.depth = depth_ - (parts_ - 1) * part_depth_;
    last_ = TESSERA_TRY(libraries_.products.get(spec_));
    // A tensor that was not made has one element, too.
    if (sums_.array().data == nullptr || sums_.size() < parts_ * result_size())
      sums_ = TESSERA_TRY(op::HostTensor::allocate(op::Dtype::f32, {parts_ * result_size()}));
    return {};
  }

  Result<void> pack() {
    for (std::int64_t part = 0; part < parts_; ++part) {
      const Matmul& product = part == parts_ - 1 ? *last_ : *product_;
      packed_.push_back(TESSERA_TRY(product.pack(b_.floats() + part * part_depth_ * spec_.columns)));
    }
    return {};
  }

  [[nodiscard]] MatmulOperands operands(std::int64_t part) const {
    MatmulOperands out;
    out.a = a_.floats() + part * part_depth_;
    out.b = b_.floats() + part * part_depth_ * spec_.columns;
    if (!packed_.empty()) out.packed = &packed_[static_cast<std::size_t>(part)];
    out.c = sums_.values<float>().data() + part * result_size();
    return out;
  }

  /// As integers wrap.
  void multiply_plainly() const {
    std::fill_n(out_, result_size(), 0);
    for (std::int64_t row = 0; row < spec_.batch * spec_.rows; ++row) {
      const std::int32_t* b = b_.integers() + row / spec_.rows * spec_.b.batch_stride;
      std::int32_t* const out = out_ + row * spec_.columns;
      for (std::int64_t k = 0; k < depth_; ++k) {
        const auto factor = static_cast<std::uint32_t>(a_.integers()[row * depth_ + k]);
        for (std::int64_t column = 0; column < spec_.columns; ++column)
          out[column] =
              static_cast<std::int32_t>(static_cast<std::uint32_t>(out[column]) +
                                        factor * static_cast<std::uint32_t>(b[k * spec_.columns + column]));
      }
    }
  }

  const LibraryForm& form_;
  Libraries& libraries_;
  MatmulSpec spec_;  ///< of one part
  std::int64_t depth_ = 0;
  bool is_shared_ = false;  ///< one matrix on the right for the whole batch
  IntegerOperand a_, b_;
  std::int32_t* out_ = nullptr;
  std::optional<ByteMatmul> bytes_;  ///< where bytes are multiplied exactly
  WeightsAs<WeightBytes> right_bytes_;
  bool may_be_bytes_ = false, is_right_read_ = false;  ///< the weights of this launch
  bool uses_bytes_ = false;                            ///< in this launch
  bool is_exact_ = false;
  std::int64_t parts_ = 0, part_depth_ = 0;
  std::shared_ptr<const Matmul> product_, last_;  ///< of all parts but the last, and of the last
  std::vector<PackedMatrix> packed_;              ///< by part
  op::HostTensor sums_;                           ///< by part
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_integer_matmul_call(const LibraryForm& form,
                                                              std::span<const op::Array> inputs,
                                                              std::span<const op::Array> results,
                                                              Libraries& libraries) {
  auto out = std::make_unique<IntegerMatmulCall>(form, libraries);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}
