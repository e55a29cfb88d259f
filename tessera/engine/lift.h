// From recorded calls to a function of the IR: only when a plan is made.
#pragma once

#include <span>
#include <vector>

#include "tessera/engine/needed.h"
#include "tessera/engine/plan_key.h"
#include "tessera/engine/size_rules.h"
#include "tessera/ir/function.h"

namespace tessera::engine {

/// One result of the function: which step it is of, and which of its results.
struct LiftedResult {
  std::uint32_t step = 0;  ///< of the component
  std::uint32_t result = 0;
};

struct Lifted {
  ir::FunctionRef function;
  std::vector<LiftedResult> results;
};

/// The component whose key this is, as a function: inputs in the order of the key, numbers as parameters,
/// sizes as the rules say. Fails if the ops do not allow the sizes to change so. `steps` empty means all.
[[nodiscard]] Result<Lifted> lift(const Needed& needed, std::span<const std::uint32_t> steps,
                                  const PlanKey& key, const SizeRules& rules);

}  // namespace tessera::engine
