// The order in which a kernel is computed: what once, what once per outer point, what at every point, and in
// how many passes over the reduced axes. The interpreter and the code generators follow it.
//
// A reduction ends a pass; what depends on it belongs to the next. A value that a later pass needs again is
// kept if it is costly and computed again if it is not.
#pragma once

#include <vector>

#include "tessera/kernel/kernel.h"

namespace tessera::kernel {

/// How often a value changes.
enum class Level : std::uint8_t {
  uniform,  ///< one value for the whole run
  row,      ///< one per outer point: not along reduced axes
  element,  ///< one per point
};

struct Pass {
  std::vector<ValueId> rows;          ///< of level row, to be computed before the pass
  std::vector<ValueId> elements;      ///< of level element, without those kept from earlier passes
  std::vector<ValueId> reductions;    ///< the reductions that this pass computes
  std::vector<std::uint32_t> stores;  ///< numbers of stores at every point
};

struct Passes {
  std::vector<Level> levels;  ///< by value
  std::vector<ValueId> uniforms;
  std::vector<Pass> passes;               ///< at least one
  std::vector<ValueId> last_rows;         ///< of level row, behind the last pass
  std::vector<std::uint32_t> row_stores;  ///< once per outer point, at the end
  std::vector<ValueId> kept;              ///< computed in one pass, read in later ones
};

/// A kernel without reduced axes has one pass, and what varies is at level element.
[[nodiscard]] Passes find_passes(const Kernel& kernel);

/// Whether an operation takes as long as many loads.
[[nodiscard]] bool is_costly(const Instruction& instruction);

/// Whether some value jumps where another moves by a rounding: then a quotient is rounded as it should be.
[[nodiscard]] bool has_jumps(const Kernel& kernel);

}  // namespace tessera::kernel
