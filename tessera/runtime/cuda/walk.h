// The points of a shape and where each lies in several arrays, with as few axes as there can be.
#pragma once

#include <vector>

#include "tessera/op/array.h"

namespace tessera::runtime::cuda {

struct Walk {
  op::Extents shape;                 ///< has one axis at least
  std::vector<op::Extents> strides;  ///< of each array, in elements

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
  [[nodiscard]] std::int64_t points() const { return op::element_count(shape); }
  /// Whether the number of points and all places fit 30 bits: then 32-bit arithmetic does.
  [[nodiscard]] bool is_small() const;
  /// The same of the places alone.
  [[nodiscard]] bool reaches_little() const;
};

/// Axes of size 1 are left out; neighbours that every array goes over as one are joined. `strides` has an
/// entry per axis of `shape` for each array.
[[nodiscard]] Walk joined_walk(const op::Extents& shape, const std::vector<op::Extents>& strides);

}  // namespace tessera::runtime::cuda
