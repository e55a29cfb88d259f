#include "tessera/runtime/cuda/scan_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view scan_block_function = R"(
__device__ inline W scan_block(W mine, W* totals) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  W sum = mine;
  for (int by = 1; by < 32; by *= 2) {
    const W other = __shfl_up_sync(0xffffffffu, sum, by);
    if (lane >= by) sum = combine(other, sum);
  }
  __syncthreads();
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  W before = identity();
  for (int w = 0; w < warp; ++w) before = combine(before, totals[w]);
  const W previous = __shfl_up_sync(0xffffffffu, sum, 1);
  return lane == 0 ? before : combine(before, previous);
}
)";

constexpr std::string_view totals_body = R"(
  __shared__ W warps[8];
  W* const row = totals + (I)blockIdx.x * chunks;
  W carry = identity();
  for (I first = 0; first < chunks; first += 256) {
    const I chunk = first + (I)threadIdx.x;
    const W mine = chunk < chunks ? row[chunk] : identity();
    const W before = scan_block(mine, warps);
    if (chunk < chunks) row[chunk] = combine(carry, before);
    for (int w = 0; w < 8; ++w) carry = combine(carry, warps[w]);
  }
  if (threadIdx.x == 0) wholes[blockIdx.x] = carry;
)";

}  // namespace

std::string_view runtime::cuda::scan_block_text() { return scan_block_function; }

void runtime::cuda::write_totals_scan(ProgramWriter& program, std::string prelude, const Memory& totals,
                                      const Memory& wholes, std::int64_t rows, std::int64_t chunks) {
  KernelWriter kernel("tessera_scan_totals", IndexWidth::wide, std::move(prelude));
  kernel.prelude(scan_block_text()).pointer("W", "totals", totals).pointer("W", "wholes", wholes);
  kernel.integer("chunks", chunks);
  program.add(std::move(kernel).launch(totals_body, rows));
}
