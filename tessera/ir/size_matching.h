// Whether the open symbols of two lists of sizes can be matched one to one so that the sizes become equal.
#pragma once

#include <span>

#include "tessera/ir/symbol_colours.h"

namespace tessera::ir {

/// Size by size. What can be told apart by where it stands is matched at once; where symbols play the same
/// part, matches are tried. Sizes made to resist (symmetric ones of hundreds of symbols that are not the
/// same) end a search that is bounded, and then count as different.
[[nodiscard]] bool can_match(std::span<const OpenSize> left, std::span<const OpenSize> right);

}  // namespace tessera::ir
