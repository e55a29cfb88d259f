// An operand of a library without gaps between its elements: as it lies, or copied before each run.
#pragma once

#include "tessera/op/array.h"

namespace tessera::runtime::cpu {

template <class Element, op::Dtype dtype>
class DenseArray {
 public:
  /// `layout` is how the operand lies, seen as the library wants it; offsets included.
  [[nodiscard]] Result<void> prepare(op::Layout layout) {
    layout_ = std::move(layout);
    is_copied_ = !layout_.is_contiguous();
    if (is_copied_) copy_ = TESSERA_TRY(op::HostTensor::allocate(dtype, layout_.shape));
    return {};
  }
  /// The elements of the array that was prepared for, which lies where it does now.
  [[nodiscard]] const Element* get(const op::Array& array) {
    const op::Array seen{dtype, layout_, array.data};
    if (!is_copied_) return reinterpret_cast<const Element*>(seen.at(layout_.offset));
    op::copy_elements(seen, copy_.array());
    return reinterpret_cast<const Element*>(copy_.array().data);
  }
  [[nodiscard]] const op::Layout& layout() const { return is_copied_ ? copy_.array().layout : layout_; }
  [[nodiscard]] bool is_copied() const { return is_copied_; }

 private:
  op::Layout layout_;
  op::HostTensor copy_;
  bool is_copied_ = false;
};

using DenseOperand = DenseArray<float, op::Dtype::f32>;
using DenseIntegers = DenseArray<std::int32_t, op::Dtype::i32>;

}  // namespace tessera::runtime::cpu
