// Running one call by the reference: plain loops, wide accumulation, any strides. The oracle for every other
// runtime.
#pragma once

#include <span>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// Computes the results of a call into arrays of the right dtype and shape, contiguous.
[[nodiscard]] Result<void> run_reference(const CallInfo& call, std::span<const Array> inputs,
                                         std::span<const Array> results);

/// Computes the results of a call into new tensors. `attributes` are complete. A result whose size depends on
/// data has its largest size and a count beside it.
[[nodiscard]] Result<std::vector<HostTensor>> run_reference(const Card& card, std::span<const Array> inputs,
                                                            const Attributes& attributes);

/// The element-wise kernel of a formula, with broadcasting.
[[nodiscard]] Result<void> run_pointwise(const CallInfo& call, const PointwiseBody& body,
                                         std::span<const Array> inputs, const Array& result);

/// The reduction kernel of a formula. The card has the attributes `axes` and `keepdims`.
[[nodiscard]] Result<void> run_reduction(const CallInfo& call, const ReductionBody& body, const Array& input,
                                         const Array& result);

}  // namespace tessera::op
