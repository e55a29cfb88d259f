// The ways to run a program that must agree, and how their results are compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tests/differential/program.h"

namespace tessera::differential {

using Results = std::vector<op::HostTensor>;

/// Statement by statement on the reference kernels: what the program means.
[[nodiscard]] Result<Results> run_reference(const ir::Function& function, const Program& program,
                                            std::span<const double> parameters);
/// Recorded as lazy tensors and evaluated at the end. Scalar parameters are recorded as numbers.
/// `unsupported` where a statement computes a size.
[[nodiscard]] Result<Results> run_lazily(const Program& program, std::span<const double> parameters);

/// The first difference in dtype, shape or bits (all NaN are one), or nothing.
[[nodiscard]] std::optional<std::string> difference(const Results& expected, const Results& got);

/// How far each element may be off: how far it moves when the inputs and everything computed from them move
/// by a few roundings. Infinite where a program is not stable.
struct Tolerance {
  std::vector<std::vector<double>> of_results;
};
[[nodiscard]] Result<Tolerance> tolerance_of(const Program& program, const Results& expected,
                                             std::span<const double> parameters, std::uint64_t seed);
[[nodiscard]] std::optional<std::string> difference_beyond(const Tolerance& tolerance,
                                                           const Results& expected, const Results& got);

}  // namespace tessera::differential
