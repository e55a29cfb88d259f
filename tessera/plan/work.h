// How much the steps of a plan take: what limits and predictions of time go by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Multiply-adds of each step, about (op/work.h), by its calls; of branches the one that takes most. 0 for
/// copies, and where nothing is known. Fails if a size is not known.
[[nodiscard]] Result<std::vector<double>> work_by_step(const Plan& plan, std::span<const std::int64_t> sizes);

/// Whether the work of a step follows from the sizes. That of a loop which ends when its data say so does
/// not.
[[nodiscard]] bool has_known_work(const Plan& plan, const Step& step);
/// The same of a function: it has neither such loops nor sizes that only its data tell.
[[nodiscard]] bool has_known_work(const ir::Function& function);

}  // namespace tessera::plan
