// The gradients of a convolution, by matrix products of f32: conv_transpose, which models also have of their
// own, and conv_weight_gradient.
#pragma once

#include "tessera/runtime/cpu/single_call.h"

namespace tessera::runtime::cpu {

/// Whether it ran: f32 over one or two axes.
[[nodiscard]] Result<bool> run_convolution_gradient(const op::CallInfo& call,
                                                    std::span<const op::Array> inputs,
                                                    std::span<const op::Array> results,
                                                    SingleCallContext context);

}  // namespace tessera::runtime::cpu
