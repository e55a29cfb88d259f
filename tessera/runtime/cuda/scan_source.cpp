// Running sums and products along an axis. Rows are cut into chunks of fixed size: the chunks' totals, what
// stands before each chunk, then the chunks. The order of operations depends on the sizes alone.
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/rows.h"
#include "tessera/runtime/cuda/scan_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

struct Scan {
  Operand x, y;
  Rows rows;
  std::string_view combine, identity;
  bool exclusive = false, reverse = false;

  [[nodiscard]] std::string numbers() const {
    return cat(element_text(x.dtype, Precision::wide), "__device__ inline W combine(W a, W b) { return ",
               combine, "(a, b); }\n__device__ inline W identity() { return ", identity, "; }\n");
  }
  [[nodiscard]] std::string prelude() const {
    return cat(numbers(), "enum { EXCLUSIVE = ", exclusive ? 1 : 0, ", REVERSE = ", reverse ? 1 : 0, " };\n");
  }
  /// The parameters that all kernels have.
  void describe(KernelWriter& kernel) const {
    kernel.pointer("const T", "x", x.memory).pointer("T", "y", y.memory);
    kernel.walk(rows.walk, std::vector<std::string_view>{"from_step", "to_step"}).prelude(place_text());
    kernel.integer("length", rows.length).integer("step", rows.step).integer("y_step", rows.result_step);
  }
};

constexpr std::string_view short_scan_body = R"(
    const T* const from = x + place_of(at, size, from_step);
    T* const to = y + place_of(at, size, to_step);
    W total = identity();
    for (I k = 0; k < length; ++k) {
      const I i = REVERSE ? length - 1 - k : k;
      const W next = combine(total, widen(from[i * step]));
      to[i * y_step] = narrow(EXCLUSIVE ? total : next);
      total = next;
    }
)";

// What the two kernels over chunks begin with: the chunk in shared memory, and this thread's part together.
constexpr std::string_view load_chunk = R"(
  __shared__ W tile[2048];
  __shared__ W warps[8];
  const I number = (I)(blockIdx.x / (unsigned)chunks), chunk = (I)(blockIdx.x % (unsigned)chunks);
  const T* const from = x + place_of(number, size, from_step);
  const I begin = chunk * 2048;
  for (int i = threadIdx.x; i < 2048; i += 256) {
    const I k = begin + i;
    tile[i] = k < length ? widen(from[(REVERSE ? length - 1 - k : k) * step]) : identity();
  }
  __syncthreads();
  W* const own = tile + threadIdx.x * 8;
  W mine = identity();
  for (int e = 0; e < 8; ++e) mine = combine(mine, own[e]);
  W before = scan_block(mine, warps);
)";

constexpr std::string_view total_end = R"(
  if (threadIdx.x == 255) totals[blockIdx.x] = combine(before, mine);
)";

constexpr std::string_view chunk_end = R"(
  if (chunks > 1) before = combine(totals[blockIdx.x], before);
  for (int e = 0; e < 8; ++e) {
    const W next = combine(before, own[e]);
    own[e] = EXCLUSIVE ? before : next;
    before = next;
  }
  __syncthreads();
  T* const to = y + place_of(number, size, to_step);
  for (int i = threadIdx.x; i < 2048; i += 256) {
    const I k = begin + i;
    if (k < length) to[(REVERSE ? length - 1 - k : k) * y_step] = narrow(tile[i]);
  }
)";

void write_chunk_kernel(ProgramWriter& program, const Scan& scan, std::string entry, const Memory& totals,
                        std::int64_t chunks, std::string_view end) {
  KernelWriter kernel(std::move(entry), scan.rows.width(), scan.prelude());
  kernel.prelude(scan_block_text());
  scan.describe(kernel);
  kernel.pointer("W", "totals", totals).integer("chunks", chunks);
  program.add(std::move(kernel).launch(cat(load_chunk, end), scan.rows.count() * chunks));
}

void write_scan(ProgramWriter& program, const Scan& scan) {
  const Rows& rows = scan.rows;
  if (rows.suit_threads()) {
    KernelWriter kernel("tessera_scan_short_rows", rows.width(), scan.prelude());
    scan.describe(kernel);
    program.add(std::move(kernel).launch_items(short_scan_body, rows.count()));
    return;
  }
  const std::int64_t chunks = (rows.length + scan_chunk - 1) / scan_chunk;
  const Memory totals = program.scratch(rows.count() * chunks * 8);
  if (chunks > 1) {
    const Memory wholes = program.scratch(rows.count() * 8);
    write_chunk_kernel(program, scan, "tessera_scan_chunk_totals", totals, chunks, total_end);
    write_totals_scan(program, scan.numbers(), totals, wholes, rows.count(), chunks);
  }
  write_chunk_kernel(program, scan, "tessera_scan_chunks", totals, chunks, chunk_end);
}

Result<void> write_running(const op::CallInfo& call, ProgramWriter& program, std::string_view combine,
                           std::string_view identity) {
  Scan scan{program.input(0),       program.result(0),   {}, combine, identity,
            call.flag("exclusive"), call.flag("reverse")};
  if (scan.x.size() == 0) return {};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), scan.x.rank()));
  scan.rows = rows_along(scan.x, scan.y, axis);
  write_scan(program, scan);
  return {};
}

}  // namespace

Result<void> runtime::cuda::write_cumsum(const op::CallInfo& call, ProgramWriter& program) {
  return write_running(call, program, "add", "0");
}
Result<void> runtime::cuda::write_cumprod(const op::CallInfo& call, ProgramWriter& program) {
  return write_running(call, program, "mul", "1");
}
