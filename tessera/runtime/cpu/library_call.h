// Single calls that a library runs better than a loop over elements.
#pragma once

#include <optional>
#include <span>

#include "tessera/op/call_info.h"
#include "tessera/runtime/cpu/matmul.h"

namespace tessera::runtime::cpu {

/// The product that a call of `matmul` on these arrays is; nothing if it is none: not f32, a vector, a batch
/// whose matrices do not lie at equal distances.
[[nodiscard]] std::optional<MatmulSpec> product_of(const op::CallInfo& call,
                                                   std::span<const op::Array> inputs,
                                                   std::span<const op::Array> results);

/// The operands of that product: the first element of each array.
[[nodiscard]] MatmulOperands product_operands(std::span<const op::Array> inputs,
                                              std::span<const op::Array> results);

}  // namespace tessera::runtime::cpu
