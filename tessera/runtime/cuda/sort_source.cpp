// Elements become keys in their order; pairs of a key and its place are all different, so that any way to
// sort them is stable. Tiles are sorted in shared memory, then sorted runs are merged two by two: each
// element counts how many of the other run stand before it.
#include "tessera/runtime/cuda/sort_source.h"

#include <algorithm>
#include <bit>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::int64_t largest_tile = 1024, least_tile = 64;
// Places of a row are counted in 32 bits up to here.
constexpr std::int64_t narrow_limit = std::int64_t{1} << 31;
// Blocks take several tiles if there are very many.
constexpr std::int64_t most_sorting_blocks = std::int64_t{1} << 30;

constexpr std::string_view pair_text = R"(
__device__ inline bool stands_before(K a, N a_place, K b, N b_place) {
  return a < b || (a == b && a_place < b_place);
}
)";

constexpr std::string_view tile_body = R"(
  extern __shared__ __align__(16) unsigned char shared_memory[];
  K* const tile_keys = (K*)shared_memory;
  N* const tile_places = (N*)(tile_keys + tile);
  for (I number = (I)blockIdx.x; number < all_tiles; number += (I)gridDim.x) {
    const I row = number / tiles, begin = number % tiles * tile;
    const T* const from = x + place_of(row, size, row_step);
    for (I i = threadIdx.x; i < tile; i += blockDim.x) {
      const I place = begin + i;
      const K key = place < length ? key_of(from[place * step]) : (K)0;
      // What lies behind the row comes behind everything: its places are the greatest.
      tile_keys[i] = place < length ? (DESCENDING ? (K)~key : key) : ~(K)0;
      tile_places[i] = (N)place;
    }
    for (I width = 2; width <= tile; width *= 2)
      for (I apart = width / 2; apart > 0; apart /= 2) {
        __syncthreads();
        for (I i = threadIdx.x; i < tile / 2; i += blockDim.x) {
          const I a = i / apart * 2 * apart + i % apart, b = a + apart;
          const bool rises = (a & width) == 0;
          if (stands_before(tile_keys[b], tile_places[b], tile_keys[a], tile_places[a]) == rises) {
            const K key = tile_keys[a];
            const N place = tile_places[a];
            tile_keys[a] = tile_keys[b];
            tile_places[a] = tile_places[b];
            tile_keys[b] = key;
            tile_places[b] = place;
          }
        }
      }
    __syncthreads();
    for (I i = threadIdx.x; i < tile; i += blockDim.x)
      if (begin + i < length) {
        keys[row * length + begin + i] = tile_keys[i];
        order[row * length + begin + i] = tile_places[i];
      }
    __syncthreads();
  }
)";

constexpr std::string_view merge_body = R"(
    const I row = at / length, place = at % length;
    const I begin = place / (2 * width) * (2 * width);
    const bool is_left = place - begin < width;
    const I middle = length - begin < width ? length : begin + width;
    const I end = length - begin < 2 * width ? length : begin + 2 * width;
    const K key = keys[at];
    const N own = order[at];
    const K* const other_keys = keys + row * length;
    const N* const other_order = order + row * length;
    I low = is_left ? middle : begin, high = is_left ? end : middle;
    const I first = low;
    while (low < high) {
      const I half = low + (high - low) / 2;
      if (stands_before(other_keys[half], other_order[half], key, own))
        low = half + 1;
      else
        high = half;
    }
    const I to = row * length + begin + (place - (is_left ? begin : middle)) + (low - first);
    merged_keys[to] = key;
    merged_order[to] = own;
)";

constexpr std::string_view emit_body = R"(
    const I row = at / length, rank = at % length;
    const N place = order[at];
    const I to = place_of(row, size, to_step) + rank * y_step;
    y[to] = x[place_of(row, size, from_step) + (I)place * step];
    places[to] = (long long)place;
)";

std::string key_prelude(ir::Dtype dtype, const SortedRows& sorted, SortOrder order) {
  return cat(key_text(dtype), "typedef ", sorted.order_type(),
             " N;\nenum { DESCENDING = ", order == SortOrder::descending ? 1 : 0, " };\n", pair_text);
}

/// How wide numbers must be to count all elements of all rows.
IndexWidth width_of_all(const Rows& rows) {
  const bool is_small = rows.count() <= (std::int64_t{1} << 30) / std::max<std::int64_t>(rows.length, 1);
  return is_small ? rows.width() : IndexWidth::wide;
}

void write_tiles(ProgramWriter& program, const Operand& x, const Rows& rows, const SortedRows& sorted,
                 SortOrder order, std::int64_t tile) {
  const std::int64_t tiles = (rows.length + tile - 1) / tile, all = rows.count() * tiles;
  KernelWriter kernel("tessera_sort_tiles", width_of_all(rows), key_prelude(x.dtype, sorted, order));
  kernel.pointer("const T", "x", x.memory).pointer("K", "keys", sorted.keys);
  kernel.pointer("N", "order", sorted.order);
  kernel.walk(rows.walk, std::vector<std::string_view>{"row_step"}).prelude(place_text());
  kernel.integer("length", rows.length).integer("step", rows.step);
  kernel.integer("tile", tile).integer("tiles", tiles).integer("all_tiles", all);
  const std::int64_t pair = key_bytes(x.dtype) + (sorted.is_wide ? 8 : 4);
  program.add(std::move(kernel).launch(tile_body, std::min(all, most_sorting_blocks), tile / 2, tile * pair));
}

void write_merge(ProgramWriter& program, const Operand& x, const Rows& rows, const SortedRows& from,
                 const SortedRows& to, std::int64_t width) {
  KernelWriter kernel("tessera_merge_runs", width_of_all(rows),
                      key_prelude(x.dtype, from, SortOrder::ascending));
  kernel.pointer("const K", "keys", from.keys).pointer("const N", "order", from.order);
  kernel.pointer("K", "merged_keys", to.keys).pointer("N", "merged_order", to.order);
  kernel.integer("length", rows.length).integer("width", width);
  program.add(std::move(kernel).launch_items(merge_body, rows.count() * rows.length));
}

}  // namespace

SortedRows runtime::cuda::write_sorted_rows(ProgramWriter& program, const Operand& x, const Rows& rows,
                                            SortOrder order) {
  const std::int64_t elements = rows.count() * rows.length;
  const auto make = [&] {
    SortedRows out;
    out.is_wide = rows.length > narrow_limit;
    out.keys = program.scratch(elements * key_bytes(x.dtype));
    out.order = program.scratch(elements * (out.is_wide ? 8 : 4));
    return out;
  };
  const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows.length)));
  const std::int64_t tile = std::clamp(whole, least_tile, largest_tile);
  SortedRows sorted = make();
  write_tiles(program, x, rows, sorted, order, tile);
  if (rows.length <= tile) return sorted;
  SortedRows other = make();
  for (std::int64_t width = tile; width < rows.length; width *= 2) {
    write_merge(program, x, rows, sorted, other, width);
    std::swap(sorted, other);
  }
  return sorted;
}

Result<void> runtime::cuda::write_sort(const op::CallInfo& call, ProgramWriter& program) {
  const Operand x = program.input(0), y = program.result(0), places = program.result(1);
  if (y.size() == 0) return {};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const Rows rows = rows_along(x, y, axis);
  const SortOrder order = call.flag("descending") ? SortOrder::descending : SortOrder::ascending;
  const SortedRows sorted = write_sorted_rows(program, x, rows, order);
  KernelWriter kernel("tessera_sorted_elements", width_of_all(rows),
                      cat(unit_text(x.element_bytes()), "typedef ", sorted.order_type(), " N;\n"));
  kernel.pointer("const T", "x", x.memory).pointer("const N", "order", sorted.order);
  kernel.pointer("T", "y", y.memory).pointer("long long", "places", places.memory);
  kernel.walk(rows.walk, std::vector<std::string_view>{"from_step", "to_step"}).prelude(place_text());
  kernel.integer("length", rows.length).integer("step", rows.step).integer("y_step", rows.result_step);
  program.add(std::move(kernel).launch_items(emit_body, y.size()));
  return {};
}
