// Gathers along the axis whose elements lie side by side: a row of x goes to shared memory in whole lines,
// and the elements that indices name are taken from there.
#include <algorithm>
#include <bit>

#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/gather.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Every read takes 32 bytes of memory, whatever it needs: with one result for four elements of 8 bytes,
/// reads in any order touch about all of a row, and copying it reads nothing more. Of shorter elements fewer
/// do.
constexpr std::int64_t elements_of_result = 4;
/// Shorter rows are few lines of the cache, from which a warp reads as fast as from shared memory.
constexpr std::int64_t least_row_bytes = 1024;
/// Rows are cut until there are so many blocks.
constexpr std::int64_t enough_blocks = 512;

constexpr std::int64_t vector_bytes = 16, lanes_of_warp = 32;
/// Rows of up to so many bytes have a warp each, longer ones a block.
constexpr std::int64_t most_bytes_of_warp = 2048;
/// Most sources take 40 registers a thread within these bounds, and a multiprocessor runs three blocks;
/// within 1,024 threads they take 58, and it runs one.
constexpr std::int64_t most_threads_of_row = 512;
/// A multiprocessor that runs three such blocks has about so much memory for each of their threads.
constexpr std::int64_t bytes_of_thread = 144;

/// Rows of x, of which each team of threads holds one, and their results.
struct HeldRows {
  Walk walk;                    ///< over the rows: strides of x, of the indices, of their numbers
  std::int64_t length = 0;      ///< of a row
  std::int64_t results = 0;     ///< of a row, side by side
  std::int64_t index_step = 0;  ///< from the index of a result to that of the next
  std::int64_t pitch = 0;       ///< elements of memory for a row that begins anywhere in 16 bytes
  std::int64_t team = lanes_of_warp, threads = block_threads;
  std::int64_t parts = 1, chunk = 0;  ///< a team has so many of the results of a row

  [[nodiscard]] std::int64_t teams() const { return threads / team; }
  [[nodiscard]] std::int64_t tasks() const { return walk.points() * parts; }
  [[nodiscard]] std::int64_t blocks() const { return divided_up(tasks(), teams()); }
};

op::Extents first_axes(const op::Extents& all, std::size_t count) {
  return {all.begin(), all.begin() + count};
}
op::Extents axes_behind(const op::Extents& all, std::size_t count) {
  return {all.begin() + count, all.end()};
}

/// The rows and their results, if one index chooses an element of a row that has no gaps, and the indices of
/// a row have one step.
std::optional<HeldRows> rows_of(const Gather& gather) {
  const auto walk_over = [&](op::Extents (*axes)(const op::Extents&, std::size_t)) {
    const std::size_t batch = gather.batch_axes;
    return joined_walk(axes(gather.y.shape, batch),
                       {axes(gather.from, batch), axes(gather.rows, batch), axes(gather.numbers, batch)});
  };
  const Walk results = walk_over(axes_behind);
  if (gather.named.axes.size() != 1 || gather.named.strides[0] != 1 || results.rank() != 1)
    return std::nullopt;
  const std::int64_t of_x = results.strides[0][0], of_indices = results.strides[1][0];
  if (of_x != 0 || (results.points() > 1 && results.strides[2][0] != 1)) return std::nullopt;
  return HeldRows{.walk = walk_over(first_axes),
                  .length = gather.named.axes[0].size,
                  .results = results.points(),
                  .index_step = of_indices};
}

/// Who holds a row, and how.
void share_out(HeldRows& rows, std::int64_t element_bytes) {
  const std::int64_t width = vector_bytes / element_bytes;
  rows.pitch = rounded_up(rows.length, width) + width;
  const std::int64_t bytes = rows.pitch * element_bytes;
  if (bytes > most_bytes_of_warp) {
    const auto wanted =
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes / bytes_of_thread)));
    rows.team = rows.threads = std::clamp(wanted, block_threads, most_threads_of_row);
  }
  // Few rows are cut, as far as each part is worth the row that is held for it.
  const std::int64_t most_parts = rows.results / divided_up(rows.length, elements_of_result);
  const std::int64_t wanted = divided_up(enough_blocks * rows.teams(), rows.walk.points());
  rows.chunk = divided_up(rows.results, std::max<std::int64_t>(1, std::min(wanted, most_parts)));
  rows.parts = divided_up(rows.results, rows.chunk);
}

/// The one place where it is decided which gathers hold rows.
std::optional<HeldRows> rows_worth_holding(const Gather& gather, const DeviceLimits& limits) {
  std::optional<HeldRows> rows = rows_of(gather);
  const std::int64_t bytes = gather.x.element_bytes();
  if (!rows || rows->length * bytes < least_row_bytes || rows->results * elements_of_result < rows->length)
    return std::nullopt;
  share_out(*rows, bytes);
  const auto of_block = static_cast<std::size_t>(rows->teams() * rows->pitch * bytes);
  const bool fits = of_block <= dynamic_shared_bytes(limits, 0);
  // With few blocks, a thread per element gives more of the device work.
  return fits && rows->blocks() >= least_blocks(limits, of_block) ? rows : std::nullopt;
}

constexpr std::string_view hold_text = R"(
__device__ inline int misplaced(const T* at) { return (int)((unsigned long long)at % 16 / sizeof(T)); }
__device__ inline void hold(T* __restrict__ to, const T* __restrict__ from, int length, int rank, int team) {
  enum { W = 16 / sizeof(T) };
  const int before = (W - misplaced(from)) % W, head = before < length ? before : length;
  const int vectors = (length - head) / W;
  uint4* const targets = (uint4*)(to + head);
  const uint4* const sources = (const uint4*)(from + head);
#pragma unroll 4
  for (int k = rank; k < vectors; k += team) targets[k] = sources[k];
  for (int k = rank; k < length - vectors * W; k += team) {
    const int at = k < head ? k : k + vectors * W;
    to[at] = from[at];
  }
}
__device__ inline void wait_for(int team) {
  if (team == 32)
    __syncwarp();
  else
    __syncthreads();
}
)";

/// A row lies in shared memory at the place in 16 bytes that it has in x. Several indices are under way at
/// once.
constexpr std::string_view held_rows_body = R"(
  extern __shared__ __align__(16) unsigned char shared_memory[];
  const int members = (int)team, rank = (int)threadIdx.x % members, own = (int)threadIdx.x / members;
  T* const memory = (T*)shared_memory + own * (int)pitch;
  const I first = (I)blockIdx.x * (I)teams + own, step = (I)gridDim.x * (I)teams;
  for (I task = first; task < tasks; task += step) {
    const I row = task / parts, begin = (task - row * parts) * chunk;
    const I end = begin + chunk < results ? begin + chunk : results;
    const T* const from = x + place_of(row, size, from_step);
    T* const held = memory + misplaced(from);
    hold(held, from, (int)extent[0], rank, members);
    wait_for(members);
    const Index* const named = indices + place_of(row, size, row_step);
    const I number = place_of(row, size, number_step);
    for (I base = begin + rank; base < end; base += 4 * members) {
      Index index[4];
#pragma unroll
      for (int u = 0; u < 4; ++u)
        if (base + u * members < end) index[u] = named[(base + u * members) * index_step];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const I place = base + u * members;
        I at = 0;
        if (place < end && find(index + u, 0, extent, axis_step, number + place, status, at))
          y[row * results + place] = held[at];
      }
    }
    wait_for(members);
  }
)";

/// As the places of the direct form are counted.
IndexWidth index_width(const Gather& gather) {
  const Walk walk = joined_walk(gather.y.shape, {gather.from, gather.y.strides, gather.rows, gather.numbers});
  return width_of(walk, gather.named);
}

}  // namespace

std::optional<Launch> runtime::cuda::gather_from_held_rows(std::string_view op, const Gather& gather,
                                                           const Memory& status, const DeviceLimits& limits) {
  const std::optional<HeldRows> rows = rows_worth_holding(gather, limits);
  if (!rows) return std::nullopt;
  KernelWriter kernel(cat("tessera_", op, "_of_rows"), index_width(gather),
                      unit_text(gather.x.element_bytes()) + index_text(gather.indices, 1));
  kernel.pointer("const T", "x", gather.x.memory).pointer("T", "y", gather.y.memory);
  kernel.pointer("const Index", "indices", gather.indices.memory).pointer("Status", "status", status);
  kernel.walk(rows->walk, std::vector<std::string_view>{"from_step", "row_step", "number_step"});
  kernel.integers("extent", gather.named.sizes()).integers("axis_step", gather.named.strides);
  kernel.integer("results", rows->results).integer("index_step", rows->index_step);
  kernel.integer("pitch", rows->pitch).integer("team", rows->team).integer("teams", rows->teams());
  kernel.integer("tasks", rows->tasks()).integer("parts", rows->parts).integer("chunk", rows->chunk);
  kernel.prelude(place_text()).prelude(hold_text).most_threads(most_threads_of_row);
  return std::move(kernel).launch(held_rows_body, std::min(rows->blocks(), most_walking_blocks),
                                  rows->threads, rows->teams() * rows->pitch * gather.x.element_bytes());
}
