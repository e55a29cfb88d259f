#include "tessera/runtime/cuda/product_text.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// A block computes a square tile of the result; narrower results get a thread per element.
constexpr std::int64_t product_tile = 64, narrow_side = 16, tile_depth = 16;

constexpr std::int64_t most_short_sums = 1 << 18;

/// The depth in parts, so that few sums keep a device busy too. Each part is added up alone, then all are.
struct Parts {
  std::int64_t count = 1, depth = 0;
};

Parts parts_of(std::int64_t depth, std::int64_t units, std::int64_t enough_units, std::int64_t least_depth) {
  const std::int64_t wanted = units == 0 ? 1 : enough_units / units;
  const std::int64_t count =
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(depth / least_depth, 1));
  const std::int64_t each = (depth + count - 1) / count;
  const std::int64_t rounded = std::max((each + tile_depth - 1) / tile_depth * tile_depth, tile_depth);
  return {std::max<std::int64_t>((depth + rounded - 1) / rounded, 1), rounded};
}

constexpr std::string_view tile_begin = R"(
  __shared__ W a_tile[16][68], b_tile[16][68];
  I number = (I)blockIdx.x;
  const I part = number % parts;
  number /= parts;
  const I first_column = number % column_tiles * 64;
  number /= column_tiles;
  const I first_row = number % row_tiles * 64, batch = number / row_tiles;
  const I begin = part * part_depth, end = depth - begin < part_depth ? depth : begin + part_depth;
  const int across = threadIdx.x % 16 * 4, down = threadIdx.x / 16 * 4;
  W sums[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
)";

constexpr std::string_view tile_load_a = R"(
  for (I first = begin; first < end; first += 16) {
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int inner = A_BY_DEPTH ? e % 16 : e / 64, outer = A_BY_DEPTH ? e / 16 : e % 64;
      const I m = first_row + outer, k = first + inner;
      W value = 0;
      if (m < rows && k < end) {)";

constexpr std::string_view tile_load_b = R"(
      }
      a_tile[inner][outer] = value;
    }
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int inner = B_BY_DEPTH ? e % 16 : e / 64, outer = B_BY_DEPTH ? e / 16 : e % 64;
      const I n = first_column + outer, k = first + inner;
      W value = 0;
      if (n < columns && k < end) {)";

constexpr std::string_view tile_multiply = R"(
      }
      b_tile[inner][outer] = value;
    }
    __syncthreads();
    for (int k = 0; k < 16; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          sums[i][j] = add(sums[i][j], mul(a_tile[k][down + i], b_tile[k][across + j]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const I m = first_row + down + i, n = first_column + across + j;
      if (m >= rows || n >= columns) continue;
      const W sum = sums[i][j];)";

constexpr std::string_view single_begin = R"(
    I number = at;
    const I n = number % columns;
    number /= columns;
    const I m = number % rows;
    number /= rows;
    const I batch = number % batches, part = number / batches;
    const I begin = part * part_depth, end = depth - begin < part_depth ? depth : begin + part_depth;
)";

constexpr std::string_view single_load_a = R"(
    W sum = 0;
    for (I k = begin; k < end; ++k) {
      W a = 0, b = 0;
      {
        W value = 0;)";

constexpr std::string_view single_load_b = R"(
        a = value;
      }
      {
        W value = 0;)";

constexpr std::string_view single_multiply = R"(
        b = value;
      }
      sum = add(sum, mul(a, b));
    }
)";

constexpr std::string_view store_part = R"(
      part_sums[((part * batches + batch) * rows + m) * columns + n] = sum;
)";

constexpr std::string_view join_begin = R"(
    I number = at;
    const I n = number % columns;
    number /= columns;
    const I m = number % rows, batch = number / rows;
    W sum = 0;
    for (I part = 0; part < parts; ++part) sum = add(sum, part_sums[part * items + at]);
)";

KernelWriter kernel_of(const TiledProduct& product, std::string_view suffix, const Parts& parts,
                       const Memory& part_sums) {
  KernelWriter kernel(cat("tessera_", product.name, suffix), product.width,
                      element_text(product.dtype, Precision::narrow));
  kernel.prelude(cat("enum { A_BY_DEPTH = ", product.a_by_depth ? 1 : 0,
                     ", B_BY_DEPTH = ", product.b_by_depth ? 1 : 0, " };\n"));
  product.describe(kernel);
  kernel.integer("batches", product.batches)
      .integer("rows", product.rows)
      .integer("columns", product.columns);
  kernel.integer("depth", product.depth).integer("parts", parts.count).integer("part_depth", parts.depth);
  if (parts.count > 1) kernel.pointer("W", "part_sums", part_sums);
  return kernel;
}

/// Bytes of W.
std::int64_t sum_bytes(ir::Dtype dtype) { return ir::size_of(dtype) == 8 ? 8 : 4; }

}  // namespace

void runtime::cuda::write_product(ProgramWriter& program, const TiledProduct& product) {
  const std::int64_t sums = product.batches * product.rows * product.columns;
  // Few short sums are no work for the few blocks that have their tiles.
  const bool is_short = product.depth <= tile_depth && sums <= most_short_sums;
  const bool by_tiles = product.rows >= narrow_side && product.columns >= narrow_side && !is_short;
  const std::int64_t row_tiles = (product.rows + product_tile - 1) / product_tile,
                     column_tiles = (product.columns + product_tile - 1) / product_tile;
  const std::int64_t tiles = product.batches * row_tiles * column_tiles;
  const Parts parts =
      by_tiles ? parts_of(product.depth, tiles, 256, 512) : parts_of(product.depth, sums, 65536, 128);
  const Memory part_sums =
      parts.count > 1 ? program.scratch(parts.count * sums * sum_bytes(product.dtype)) : Memory{};
  const std::string_view store = parts.count > 1 ? store_part : product.store;
  if (by_tiles) {
    KernelWriter kernel = kernel_of(product, "_tiles", parts, part_sums);
    kernel.integer("row_tiles", row_tiles).integer("column_tiles", column_tiles);
    program.add(std::move(kernel).launch(cat(tile_begin, product.prepare, tile_load_a, product.load_a,
                                             tile_load_b, product.load_b, tile_multiply, store, "    }\n"),
                                         tiles * parts.count));
  } else {
    program.add(kernel_of(product, "", parts, part_sums)
                    .launch_items(cat(single_begin, product.prepare, single_load_a, product.load_a,
                                      single_load_b, product.load_b, single_multiply, store),
                                  sums * parts.count));
  }
  if (parts.count > 1)
    program.add(kernel_of(product, "_join", parts, part_sums)
                    .launch_items(cat(join_begin, product.prepare, product.store), sums));
}
