// How a matrix product is cut into items for threads.
#pragma once

#include "tessera/runtime/cpu/matmul.h"

namespace tessera::runtime::cpu {

/// Checks sizes, joins a batch that is one matrix, and gives axes of size 1 the strides that libraries
/// expect.
[[nodiscard]] Result<MatmulSpec> normalised(const MatmulSpec& spec);

/// Depends on the sizes alone. Items have all columns if there are rows enough to share out, else panels.
[[nodiscard]] MatmulSplit split(const MatmulSpec& spec);
/// The same for a product whose items are computed in scratch memory first: always in panels.
[[nodiscard]] MatmulSplit split_for_tiles(const MatmulSpec& spec);

/// The rows of an item (MatmulSpec::row_block) of a product whose packed weights are larger than the caches:
/// every item reads all of them, so there are few items, but some for each of the threads. 0: as split()
/// says. Rows are computed the same way in any of these blocks, so results do not depend on the threads.
[[nodiscard]] std::int64_t large_row_block(const MatmulSpec& spec, unsigned threads);

/// The same for any number of rows, so that packed weights serve them all.
[[nodiscard]] std::int64_t panel_width(std::int64_t columns, std::int64_t depth);

/// For our own product. Every item puts weights that are not packed in order for itself. So items have many
/// rows: blocks of them with all columns, which are what the threads share out in the steps behind it, or all
/// rows of a panel of columns.
[[nodiscard]] MatmulSplit split_for_own(const MatmulSpec& spec);

}  // namespace tessera::runtime::cpu
