// Windows that slide over up to three spatial axes, as kernels see them: axes that are not there have size 1.
#pragma once

#include "tessera/op/families/window.h"
#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// Lists `extent`, `kernel`, `places`, `stride`, `pad` and `dilation`, of three axes each: the sizes that the
/// window slides over, its own, its positions, and how it lies.
void add_window(KernelWriter& writer, const op::Sliding& window);

/// Whether all of it can be counted in 32 bits, with as many elements as the operands have.
[[nodiscard]] IndexWidth width_of(const op::Sliding& window, std::int64_t most_elements);

}  // namespace tessera::runtime::cuda
