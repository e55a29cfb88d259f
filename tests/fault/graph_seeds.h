// Saved graph descriptions for tests that change their bytes: op, kernel and captured nodes in blocks and
// regions of every kind, over buffers of all lifetimes.
#pragma once

#include <string>

#include "tessera/describe/kernels.h"

namespace tessera::fixture {

/// How many there are.
inline constexpr std::size_t graph_seed_count = 40;

/// The bytes of a file, compiled for the CPU when it is first asked for.
[[nodiscard]] const std::string& graph_seed(std::size_t index);

/// What they call.
[[nodiscard]] description::KernelTable graph_kernels();

}  // namespace tessera::fixture
