// Programs of plans on tensors: how models and plans from files are called.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/tensor/tensor.h"

namespace tessera::detail {

/// Inputs that are lazy are evaluated, all are read where they lie, and the outputs are stored tensors of
/// `engine`. What is on another engine is copied. REQUIRES a runner on `engine`, and inputs that are not
/// empty.
[[nodiscard]] Result<std::vector<Tensor>> run_program(engine::PlanRunner& runner,
                                                      const std::shared_ptr<engine::Engine>& engine,
                                                      std::span<const Tensor> inputs,
                                                      std::span<const std::uint64_t> parameters, Here here);

}  // namespace tessera::detail
