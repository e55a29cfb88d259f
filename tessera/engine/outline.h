// What a component does, op by op, in the terms of the program that recorded it; and in words, how one
// differs from another. Made when a plan is made or missed, not when one is found.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/engine/needed.h"
#include "tessera/engine/plan_key.h"
#include "tessera/engine/size_rules.h"

namespace tessera::engine {

struct OutlineOperand {
  enum class Kind : std::uint8_t { step, input, number };
  Kind kind = Kind::number;
  std::uint32_t index = 0;  ///< of the step or the input

  bool operator==(const OutlineOperand&) const = default;
};

struct OutlineOp {
  std::string name;  ///< of the op, or "region"
  const char* file = nullptr;
  std::uint32_t line = 0;
  op::Attributes attributes;
  SmallVector<OutlineOperand, 3> operands;
  Dtype dtype = Dtype::f32;
  Extents shape;
  std::size_t other_sizes = 0;     ///< of its other results
  std::size_t position_count = 0;  ///< of a slice or an update of one
  bool is_kept = false;
};

struct OutlineInput {
  Dtype dtype = Dtype::f32;
  Extents shape;
  bool is_contiguous = true;
};

struct Outline {
  std::vector<OutlineOp> ops;
  std::vector<OutlineInput> inputs;
  std::vector<std::int64_t> sizes;  ///< of the key, positions last

  /// REQUIRES the engine's lock, or that no other thread walks these nodes.
  static Outline of(const Needed& needed, std::span<const std::uint32_t> steps,
                    std::span<const std::uint32_t> local, const PlanKey& key);
};

/// Why a plan that was made for `before`, whose sizes follow `rules`, does not serve `now`: the first place
/// where the structure differs, else the first number that the rules do not allow; with the caller's line:
/// "train.cpp:12: relu, where the plan has tanh (train.cpp:10)". Empty if there is no difference.
[[nodiscard]] std::string first_difference(const Outline& before, const SizeRules& rules, const Outline& now);
/// How many ops at the beginning have the same structure.
[[nodiscard]] std::size_t common_ops(const Outline& a, const Outline& b);

}  // namespace tessera::engine
