// The places of what is not 0: how many each chunk has, how many stand before it, then the rows.
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/scan_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view count_text = R"(
typedef long long W;
__device__ inline W combine(W a, W b) { return a + b; }
__device__ inline W identity() { return 0; }
)";

// Each thread looks at 8 elements that follow each other: bit e of `hits` is the e-th.
constexpr std::string_view look = R"(
  __shared__ W warps[8];
  const I begin = (I)blockIdx.x * 2048 + (I)threadIdx.x * 8;
  unsigned hits = 0;
  W mine = 0;
  for (int e = 0; e < 8; ++e)
    if (begin + e < count && is_hit(x[place_of(begin + e, size, x_step)])) {
      hits |= 1u << e;
      ++mine;
    }
  W before = scan_block(mine, warps);
)";

constexpr std::string_view count_end = R"(
  if (threadIdx.x == 255) totals[blockIdx.x] = before + mine;
)";

constexpr std::string_view rows_end = R"(
  before += totals[blockIdx.x];
  for (int e = 0; e < 8; ++e) {
    if ((hits >> e & 1u) == 0u) continue;
    long long* const row = rows + before * RANK;
    I rest = begin + e;
    for (int a = RANK - 1; a >= 0; --a) {
      row[a] = rest % extent[a];
      rest /= extent[a];
    }
    ++before;
  }
)";

Launch look_kernel(const Operand& x, std::string entry, const Memory& totals, const Memory& rows,
                   std::int64_t chunks, std::string_view end) {
  const Walk walk = joined_walk(x.shape, {x.strides});
  // The sign of a zero does not count.
  KernelWriter kernel(std::move(entry), width_of(walk), std::string(count_text));
  kernel.prelude(cat("typedef ", stored_type(x.dtype), " T;\nenum { RANK = ", x.rank(),
                     " };\n__device__ inline bool is_hit(T x) { return ",
                     is_half(x.dtype) ? "(x & 0x7fff)" : "x", " != 0; }\n", scan_block_text()));
  kernel.pointer("const T", "x", x.memory).pointer("long long", "totals", totals);
  kernel.pointer("long long", "rows", rows);
  kernel.walk(walk, std::vector<std::string_view>{"x_step"}).prelude(place_text());
  kernel.integer("count", x.size()).integers("extent", x.shape);
  return std::move(kernel).launch(cat(look, end), chunks);
}

}  // namespace

Result<void> runtime::cuda::write_nonzero(const op::CallInfo&, ProgramWriter& program) {
  const Operand x = program.input(0), rows = program.result(0), count = program.result(1);
  if (x.size() == 0) {
    program.clear(count.memory, 8);
    return {};
  }
  const std::int64_t chunks = (x.size() + scan_chunk - 1) / scan_chunk;
  const Memory totals = program.scratch(chunks * 8);
  program.add(look_kernel(x, "tessera_count_nonzero", totals, rows.memory, chunks, count_end));
  write_totals_scan(program, std::string(count_text), totals, count.memory, 1, chunks);
  if (rows.size() == 0) return {};
  program.clear(rows.memory, rows.size() * 8);
  program.add(look_kernel(x, "tessera_nonzero_rows", totals, rows.memory, chunks, rows_end));
  return {};
}
