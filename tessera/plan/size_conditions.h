// What must hold of a plan's size symbols so that every call gives the types that the plan says. Types are
// checked when a program is compiled, but two symbols may be equal for reasons that only a launch shows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Adds to `equal_sizes` what the calls of the plan need. Fails if a call cannot have the types it has.
[[nodiscard]] Result<void> add_size_conditions(Plan& plan);

/// The first two sizes that the plan needs to be equal and that are not, if the symbols are these numbers.
/// Fails if a size is not known. REQUIRES a number for each symbol.
[[nodiscard]] Result<std::optional<std::pair<op::Dim, op::Dim>>> unequal_sizes(
    const Plan& plan, std::span<const std::int64_t> sizes);

/// Whether the symbols can be these numbers, and every call has the types that the plan says when they are.
/// The rule of an op may ask for more than equal sizes, a slice that lies within, a remainder that is 0,
/// which symbols cannot tell. Programs that are recorded call by call need not be asked: each call knew its
/// numbers. REQUIRES a number for each symbol.
[[nodiscard]] Result<void> check_sizes(const Plan& plan, std::span<const std::int64_t> sizes);

}  // namespace tessera::plan
