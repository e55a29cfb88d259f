// Where the elements of an array lie.
#pragma once

#include "tessera/op/array.h"

namespace tessera::runtime::cpu {

/// The offset of element `index`, counted in row-major order.
[[nodiscard]] inline std::int64_t element_offset(const op::Layout& layout, std::int64_t index) {
  std::int64_t offset = layout.offset;
  for (std::size_t axis = layout.rank(); axis-- > 0;) {
    offset += index % layout.shape[axis] * layout.strides[axis];
    index /= layout.shape[axis];
  }
  return offset;
}

}  // namespace tessera::runtime::cpu
