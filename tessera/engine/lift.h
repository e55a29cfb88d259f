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

/// A slice on the way from a stored tensor to an input of the function.
struct LiftedSlice {
  std::uint32_t step = 0;            ///< of the component
  std::uint32_t first_position = 0;  ///< of the key
};

/// An input of the function: one of the key, or what slices of it take, which begins elsewhere each time.
struct LiftedInput {
  std::uint32_t input = 0;  ///< of the key
  std::vector<LiftedSlice> slices;
};

/// What a parameter of the function is: a number of the key or one of its positions.
struct LiftedParameter {
  enum class Kind : std::uint8_t { number, position };
  Kind kind = Kind::number;
  std::uint32_t index = 0;
};

struct Lifted {
  ir::FunctionRef function;
  std::vector<LiftedInput> inputs;
  std::vector<LiftedParameter> parameters;
  std::vector<LiftedResult> results;
  std::vector<std::uint32_t> moved;  ///< positions that may be any number, whatever the rules said
};

/// Which slices of stored tensors are inputs: those that move by the rules, or all, so that a plan does not
/// depend on what was evaluated before.
enum class StoredSlices : std::uint8_t { by_rules, all };

/// The component whose key this is, as a function: inputs and numbers as parameters, sizes as the rules say.
/// A slice of a stored tensor that moves is an input; other parts that move are at positions that are
/// parameters. Fails if the ops do not allow the sizes to change so. `steps` empty means all.
[[nodiscard]] Result<Lifted> lift(const Needed& needed, std::span<const std::uint32_t> steps,
                                  const PlanKey& key, const SizeRules& rules, StoredSlices inputs);

}  // namespace tessera::engine
