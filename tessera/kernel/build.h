// From a region of the IR to a kernel, and the rule for growing regions.
#pragma once

#include <span>

#include "tessera/ir/function.h"
#include "tessera/kernel/kernel.h"
#include "tessera/op/call_info.h"

namespace tessera::kernel {

/// The kernel of a function without regions and calls of functions. Its inputs are the function's parameters,
/// its outputs the results, in their order. Fails with code `unsupported`, naming the op and its line, if it
/// cannot be one kernel: an op without an element formula (and without a decomposition into ops that have
/// one), reductions over different axes, results over different axes, a computed value seen in two ways.
/// A precise one computes an op that is several operations on a function (a sigmoid) in f64.
[[nodiscard]] Result<Kernel> build(const ir::Function& function, Accuracy accuracy = Accuracy::usual);

/// Whether a call can be part of a region at all: asked of the card, not of a list of ops. `attributes` are
/// complete. Whether several calls can be one kernel is what build() says.
[[nodiscard]] bool can_fuse(const op::Card& card, std::span<const op::ValueType> inputs,
                            const op::Attributes& attributes);

}  // namespace tessera::kernel
