// Saved plans for tests that change their bytes: what a compiler makes of programs with regions, sizes that
// depend on data, flags, states, libraries and kernels, and of every op.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tessera/base/result.h"

namespace tessera::fixture {

struct PlanSeed {
  std::string name;
  std::string bytes;
  std::map<std::string, std::int64_t> sizes;  ///< of its symbols, so that it runs
};

/// How many there are.
[[nodiscard]] std::size_t plan_seed_count();

/// Compiled for the CPU when it is first asked for.
[[nodiscard]] Result<const PlanSeed*> plan_seed(std::size_t index);

}  // namespace tessera::fixture
