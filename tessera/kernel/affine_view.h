// What a view does to indices, found by asking the card's rule about layouts with known strides: no list of
// views is kept.
#pragma once

#include <vector>

#include "tessera/kernel/kernel.h"
#include "tessera/op/call_info.h"

namespace tessera::kernel {

enum class ViewKind : std::uint8_t {
  affine,      ///< the index in the source is an affine map of the index in the result, for any strides
  same_order,  ///< the elements in row-major order stay in it: a reshape
  other,
};

struct ViewMap {
  ViewKind kind = ViewKind::other;
  std::vector<Start> starts;  ///< affine: one per axis of the source
  std::vector<Term> terms;    ///< `axis` of the result, `array_axis` of the source
};

/// The map of a call of a card with a view rule. Symbolic sizes are given numbers, twice, and what depends on
/// them other than by the size of its own axis is no affine view.
[[nodiscard]] ViewMap view_map(const op::CallInfo& call);

}  // namespace tessera::kernel
