// Scans over blocks of threads, for running sums and for all that must know how many came before.
#pragma once

#include <string_view>

#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// Elements that a block scans: each thread takes as many as there are elements for a thread.
inline constexpr std::int64_t scan_elements = 8, scan_chunk = block_threads * scan_elements;

/// `W scan_block(W mine, W* totals)`: what the threads before this one have together, and in `totals[8]`
/// (shared) what each warp has. `W`, `combine` and `identity` stand before it.
[[nodiscard]] std::string_view scan_block_text();

/// Replaces the totals of the chunks of each row by what stands before them, and writes the whole of each row
/// to `wholes`. `prelude` gives `W`, `combine` and `identity`.
void write_totals_scan(ProgramWriter& program, std::string prelude, const Memory& totals,
                       const Memory& wholes, std::int64_t rows, std::int64_t chunks);

}  // namespace tessera::runtime::cuda
