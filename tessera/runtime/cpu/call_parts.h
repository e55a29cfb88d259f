// Calls that no library and no kernel computes whole, as the simpler calls that they stand for.
#pragma once

#include "tessera/runtime/cpu/single_call.h"

namespace tessera::runtime::cpu {

/// Whether the call had parts, and they ran.
[[nodiscard]] Result<bool> run_by_parts(const op::CallInfo& call, std::span<const op::Array> inputs,
                                        std::span<const op::Array> results, SingleCallContext context);

}  // namespace tessera::runtime::cpu
