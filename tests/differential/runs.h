// The ways to run a program that must agree, and how their results are compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/engine.h"
#include "tessera/runtime/device.h"
#include "tests/differential/program.h"

namespace tessera::differential {

using Results = std::vector<op::HostTensor>;

/// Statement by statement on the reference kernels: what the program means.
[[nodiscard]] Result<Results> run_reference(const ir::Function& function, const Program& program,
                                            std::span<const double> parameters);
/// Recorded as lazy tensors of an engine and evaluated at the end, twice: the second time with the tensors of
/// the first, of which devices may have kept something. Scalar parameters are recorded as numbers.
/// `unsupported` where a statement computes a size.
[[nodiscard]] Result<std::vector<Results>> run_lazily(const Program& program,
                                                      std::span<const double> parameters,
                                                      const std::shared_ptr<engine::Engine>& engine);

/// Recorded with ops of the program's own in place of some of the catalogue (custom_twin), and as it is: what
/// differs in the results (which must be the same bits on the reference), or in the gradients of their sum by
/// the inputs (which may round otherwise). Nothing if gradients cannot be taken.
[[nodiscard]] Result<std::optional<std::string>> twins_differ(const Program& program,
                                                              std::span<const double> parameters,
                                                              const std::shared_ptr<engine::Engine>& engine);

/// Compiled to a plan for a device and launched twice, the second time with `parameters` and after other
/// numbers.
[[nodiscard]] Result<Results> run_planned(const Program& program, const compiler::PlanOptions& options,
                                          runtime::Device& device, const pattern::Target& target,
                                          std::span<const double> parameters);

/// The first difference in dtype, shape or bits (all NaN are one), or nothing.
[[nodiscard]] std::optional<std::string> difference(const Results& expected, const Results& got);

}  // namespace tessera::differential
