// A kernel with its arrays: sizes, addresses and strides of one run, checked. Adjacent axes that every
// operand walks over as one are joined, so that loops are long.
#pragma once

#include <span>

#include "tessera/base/result.h"
#include "tessera/base/small_vector.h"
#include "tessera/kernel/kernel.h"
#include "tessera/op/array.h"

namespace tessera::kernel {

/// How the loops of a run are laid out.
struct Binding {
  struct Axis {
    std::int64_t size = 1;
    std::uint32_t number = 0;  ///< of the kernel; of joined ones the last
  };

  SmallVector<std::int64_t, 8> extents;  ///< by axis of the kernel
  SmallVector<Axis, 4> outer;            ///< none has size 1
  SmallVector<Axis, 4> reduced;
  SmallVector<std::byte*, 8> data;        ///< by operand: the element of the first point
  SmallVector<std::int64_t, 32> strides;  ///< in elements: [operand * axes + axis], outer ones first
  bool is_empty = false;                  ///< there is nothing to compute

  [[nodiscard]] std::size_t axis_count() const { return outer.size() + reduced.size(); }
  [[nodiscard]] std::int64_t stride(std::size_t operand, std::size_t axis) const {
    return strides[operand * axis_count() + axis];
  }
  [[nodiscard]] std::int64_t outer_points() const;
  [[nodiscard]] std::int64_t reduced_points() const;
};

/// Fails if a dtype or a shape does not fit the kernel, naming the argument; and if a reduction that needs
/// elements has none. Everything that a run reads and writes lies inside the arrays. Outputs may be inputs
/// only element by element (the same address for the same point). Does not allocate for up to 8 operands and
/// 4 axes if `out` was used before.
[[nodiscard]] Result<void> bind(const Kernel& kernel, std::span<const op::Array> inputs,
                                std::span<const op::Array> outputs, Binding& out);

}  // namespace tessera::kernel
