// How a matrix product is cut into items for threads.
#pragma once

#include "tessera/runtime/cpu/matmul.h"

namespace tessera::runtime::cpu {

/// Checks sizes, joins a batch that is one matrix, and gives axes of size 1 the strides that libraries
/// expect.
[[nodiscard]] Result<MatmulSpec> normalised(const MatmulSpec& spec);

/// Depends on the sizes alone; the width of panels on columns and depth alone, so that packed weights serve
/// any number of rows.
[[nodiscard]] MatmulSplit split(const MatmulSpec& spec);

}  // namespace tessera::runtime::cpu
