// What a caller or a file can get wrong in a Problem, except for a cycle in its edges.
#pragma once

#include "tessera/base/result.h"
#include "tessera/cover/cover.h"

namespace tessera::cover {

/// An error that names the first wrong value: an id out of range, an empty or unsorted candidate, a negative
/// or non-finite cost, costs without a finite sum, a list of the wrong length.
[[nodiscard]] Result<void> validate(const Problem& problem);

}  // namespace tessera::cover
