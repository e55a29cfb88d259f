// How much the steps of a plan take: what limits and predictions of time go by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Multiply-adds of each step, about (op/work.h), by its calls; 0 for regions and functions, whose work is
/// not known, and for copies. Fails if a size is not known.
[[nodiscard]] Result<std::vector<double>> work_by_step(const Plan& plan, std::span<const std::int64_t> sizes);

}  // namespace tessera::plan
