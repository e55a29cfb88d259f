// Types of recorded values by number: a node carries the number of its type, so that calls on operands of the
// same types are found without looking at their sizes.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ir/dtype.h"

namespace tessera::engine {

/// Equal numbers mean equal types. Different numbers mostly mean different types: what has not been seen for
/// long may get a second number.
using TypeNumber = std::uint32_t;
inline constexpr TypeNumber no_type_number = 0;

/// Of an array of this dtype and these sizes; none if all numbers are taken. Any thread may ask.
[[nodiscard]] TypeNumber type_number(ir::Dtype dtype, std::span<const std::int64_t> sizes);

}  // namespace tessera::engine
