// A call with the arrays it is made on: all that a device has to know to make it again and again.
#pragma once

#include <memory>
#include <vector>

#include "tessera/op/array.h"
#include "tessera/op/call_info.h"

namespace tessera::op {

/// Immutable. The memory of the arrays is somebody else's.
struct BoundCall {
  std::shared_ptr<const Card> card;  ///< one of the catalogue need not be owned
  ValueTypes types;                  ///< of the inputs
  Attributes attributes;             ///< complete
  std::vector<Array> inputs, results;

  [[nodiscard]] CallInfo info() const { return {*card, types, attributes}; }
};
using BoundCallRef = std::shared_ptr<const BoundCall>;

/// Whether contiguous arrays share memory.
[[nodiscard]] bool overlap(const Array& a, const Array& b);

/// The results of a call on contiguous arrays that lie where inputs do which it may still read when it writes
/// them: it has to compute those elsewhere. A call element by element may compute an input in its place; what
/// code of the program's own does with its memory is its own affair.
[[nodiscard]] std::vector<std::size_t> results_over_inputs(const CallInfo& call,
                                                           std::span<const Array> inputs,
                                                           std::span<const Array> results);

}  // namespace tessera::op
