#include "tessera/runtime/cpu/winograd.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "tessera/base/rounding.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t tile_size = 6, tile_results = 4, window = 3, points = tile_size * tile_size;
/// Numbers of an item between the steps: they stay in the second cache.
constexpr std::int64_t most_between = 1 << 17;
/// Tiles that are worth reading the filters for, which may lie farther away; how many numbers of filters do
/// not, and the most, of which four copies take the place of one.
constexpr std::int64_t good_tiles = 14;
constexpr std::int64_t few_filter_numbers = 1 << 18, most_filter_numbers = 1 << 22;
constexpr std::int64_t fewest_items = 4;
constexpr std::int64_t line = 64 / sizeof(float);

/// Points that lie an even number of lines apart fall on few places of the first cache.
std::int64_t point_stride(std::int64_t numbers) { return (divided_up(numbers, line) | 1) * line; }

/// What a filter's three numbers in a row are multiplied by at each point.
using PointFactors = std::array<std::array<double, window>, tile_size>;

PointFactors filter_factors() {
  constexpr double at[] = {0, near_point, -near_point, far_point, -far_point};
  PointFactors out{};
  for (std::size_t p = 0; p < std::size(at); ++p) {
    double divisor = 1;
    for (std::size_t other = 0; other < std::size(at); ++other)
      if (other != p) divisor *= at[p] - at[other];
    out[p] = {1 / divisor, at[p] / divisor, at[p] * at[p] / divisor};
  }
  out[tile_size - 1] = {0, 0, 1};
  return out;
}

/// A filter of one channel at all points.
std::array<float, points> filter_points(const float* filter, const PointFactors& factors) {
  std::array<std::array<double, window>, tile_size> half{};
  for (std::size_t p = 0; p < tile_size; ++p)
    for (std::size_t x = 0; x < window; ++x)
      for (std::size_t y = 0; y < window; ++y) half[p][x] += factors[p][y] * filter[y * window + x];
  std::array<float, points> out{};
  for (std::size_t p = 0; p < tile_size; ++p)
    for (std::size_t q = 0; q < tile_size; ++q) {
      double sum = 0;
      for (std::size_t x = 0; x < window; ++x) sum += factors[q][x] * half[p][x];
      out[p * tile_size + q] = static_cast<float>(sum);
    }
  return out;
}

}  // namespace

bool Winograd::suits(const ConvolutionSpec& spec) {
  const Pair output = spec.output_size();
  const std::int64_t tiles =
      spec.batch * divided_up(output[0], tile_results) * divided_up(output[1], tile_results);
  const std::int64_t numbers = spec.channels * spec.filters * points;
  return numbers <= (tiles < good_tiles ? few_filter_numbers : most_filter_numbers);
}

Winograd::Winograd(const ConvolutionSpec& spec)
    : spec_(spec),
      output_(spec.output_size()),
      lanes_(winograd_kernel().lanes),
      channels_(rounded_up(spec.channels, lanes_)),
      filters_(padded_columns(spec.filters)) {
  const std::int64_t most_tiles = std::max(most_between / (points * (channels_ + filters_)), good_tiles);
  const std::int64_t tiles_of_row = divided_up(output_[1], tile_results);
  strips_of_row_ = divided_up(tiles_of_row, most_tiles);
  strip_tiles_ = divided_up(tiles_of_row, strips_of_row_);
  rows_of_tiles_ = divided_up(output_[0], tile_results);
  strips_ = spec.batch * rows_of_tiles_ * strips_of_row_;
  // Threads mostly come in even numbers.
  const std::int64_t wanted = divided_up(strips_, std::max(most_tiles / strip_tiles_, std::int64_t{1}));
  items_ = std::min(std::max(rounded_up(wanted, 2), fewest_items), strips_);
  const std::int64_t item_tiles = divided_up(strips_, items_) * strip_tiles_;
  source_stride_ = point_stride(item_tiles * channels_);
  product_stride_ = point_stride(item_tiles * filters_);
  const std::int64_t columns = strip_tiles_ * tile_results;
  source_row_ = (columns + tile_size - tile_results) * lanes_;
  result_row_ = rounded_up(columns, lanes_) * lanes_;
  apart_row_ = tile_results * columns + lanes_;
}

Winograd::Memory Winograd::memory(float* scratch) const {
  Memory out{};
  const auto take = [&](std::int64_t count) { return std::exchange(scratch, scratch + count); };
  out.source_points = take(points * source_stride_);
  out.products = take(points * product_stride_);
  out.source_rows = take(tile_size * source_row_);
  out.result_rows = take(tile_results * result_row_);
  out.apart = take(lanes_ * apart_row_);
  out.workspace = take(apart_row_);
  return out;
}

std::size_t Winograd::scratch_bytes() const {
  const std::int64_t numbers = points * (source_stride_ + product_stride_) + tile_size * source_row_ +
                               tile_results * result_row_ + (lanes_ + 1) * apart_row_;
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

Winograd::Strip Winograd::strip(std::int64_t number) const {
  Strip out{};
  const std::int64_t in_image = number % (rows_of_tiles_ * strips_of_row_);
  out.image = number / (rows_of_tiles_ * strips_of_row_);
  out.row = in_image / strips_of_row_ * tile_results;
  out.column = in_image % strips_of_row_ * strip_tiles_ * tile_results;
  out.rows = std::min(tile_results, output_[0] - out.row);
  out.columns = std::min(strip_tiles_ * tile_results, output_[1] - out.column);
  out.tiles = divided_up(out.columns, tile_results);
  return out;
}

std::vector<float> Winograd::pack(const float* weights) const {
  const PointFactors factors = filter_factors();
  const std::int64_t panel = gemm_kernel().columns, of_point = spec_.channels * filters_;
  std::vector<float> out(static_cast<std::size_t>(points * of_point), 0.0f);
  for (std::int64_t f = 0; f < spec_.filters; ++f)
    for (std::int64_t c = 0; c < spec_.channels; ++c, weights += window * window) {
      const auto numbers = filter_points(weights, factors);
      float* const to = out.data() + (f / panel * spec_.channels + c) * panel + f % panel;
      for (std::int64_t p = 0; p < points; ++p) to[p * of_point] = numbers[static_cast<std::size_t>(p)];
    }
  return out;
}

void Winograd::run(const ConvolutionOperands& operands, const float* filters, std::int64_t item,
                   float* scratch) const {
  const Memory memory = this->memory(scratch);
  const std::int64_t begin = strips_ * item / items_, end = strips_ * (item + 1) / items_;
  std::int64_t tiles = 0;
  for (std::int64_t s = begin; s < end; ++s) {
    const Strip here = strip(s);
    read(operands.source, here, memory, tiles);
    tiles += here.tiles;
  }
  multiply(filters, tiles, memory);
  tiles = 0;
  for (std::int64_t s = begin; s < end; ++s) {
    const Strip here = strip(s);
    write(operands, here, memory, tiles);
    tiles += here.tiles;
  }
}

void Winograd::read(const float* source, const Strip& strip, const Memory& memory, std::int64_t tile) const {
  const std::int64_t size = spec_.size[0] * spec_.size[1];
  for (std::int64_t c = 0; c < spec_.channels; c += lanes_) {
    read_rows(source + (strip.image * spec_.channels + c) * size, std::min(lanes_, spec_.channels - c), strip,
              memory.source_rows);
    winograd_kernel().source_points({strip.tiles, memory.source_rows, source_row_,
                                     memory.source_points + tile * channels_ + c, channels_, source_stride_});
  }
}

/// With zeros for padding.
void Winograd::read_rows(const float* channel, std::int64_t channels, const Strip& strip, float* rows) const {
  const std::int64_t left = strip.column - spec_.padding_low[1];
  const std::int64_t begin = std::max<std::int64_t>(left, 0);
  const std::int64_t end = std::min(left + source_row_ / lanes_, spec_.size[1]);
  for (std::int64_t y = 0; y < tile_size; ++y, rows += source_row_) {
    const std::int64_t row = strip.row - spec_.padding_low[0] + y;
    if (row < 0 || row >= spec_.size[0] || begin >= end) {
      std::fill_n(rows, source_row_, 0.0f);
      continue;
    }
    std::fill_n(rows, (begin - left) * lanes_, 0.0f);
    winograd_kernel().put_together({const_cast<float*>(channel) + row * spec_.size[1] + begin,
                                    spec_.size[0] * spec_.size[1], channels, end - begin,
                                    rows + (begin - left) * lanes_});
    std::fill(rows + (end - left) * lanes_, rows + source_row_, 0.0f);
  }
}

void Winograd::multiply(const float* filters, std::int64_t tiles, const Memory& memory) const {
  const GemmKernel& kernel = gemm_kernel();
  for (std::int64_t p = 0; p < points; ++p)
    for (std::int64_t f = 0; f < spec_.filters; f += kernel.columns) {
      GemmKernel::Tile tile;
      tile.b = filters + (p * filters_ + f) * spec_.channels;
      tile.b_stride = kernel.columns;
      tile.depth = spec_.channels;
      tile.c_stride = filters_;
      tile.ahead = tile.b;
      const auto& functions = spec_.filters - f <= kernel.vector ? kernel.narrow : kernel.function;
      for (std::int64_t t = 0; t < tiles; t += kernel.rows) {
        tile.a = {memory.source_points + p * source_stride_ + t * channels_, channels_, 1};
        tile.c = memory.products + p * product_stride_ + t * filters_ + f;
        functions[std::min(kernel.rows, tiles - t)](tile);
      }
    }
}

void Winograd::write(const ConvolutionOperands& operands, const Strip& strip, const Memory& memory,
                     std::int64_t tile) const {
  for (std::int64_t f = 0; f < spec_.filters; f += lanes_) {
    winograd_kernel().result_numbers({strip.tiles, memory.result_rows, result_row_,
                                      memory.products + tile * filters_ + f, filters_, product_stride_});
    // What a row writes behind its last column the next one writes again.
    for (std::int64_t y = 0; y < strip.rows; ++y)
      winograd_kernel().put_apart({memory.apart + y * strip.columns, apart_row_, lanes_, strip.columns,
                                   memory.result_rows + y * result_row_});
    for (std::int64_t i = 0; i < std::min(lanes_, spec_.filters - f); ++i)
      finish(operands, strip, f + i, memory);
  }
}

/// Rows that are as wide as the image lie in one piece.
void Winograd::finish(const ConvolutionOperands& operands, const Strip& strip, std::int64_t filter,
                      const Memory& memory) const {
  const bool is_one_piece = strip.columns == output_[1];
  const std::int64_t pieces = is_one_piece ? 1 : strip.rows;
  const std::int64_t numbers = is_one_piece ? strip.rows * strip.columns : strip.columns;
  float* product = memory.apart + filter % lanes_ * apart_row_;
  for (std::int64_t piece = 0; piece < pieces; ++piece, product += numbers) {
    const std::int64_t place =
        ((strip.image * spec_.filters + filter) * output_[0] + strip.row + piece) * output_[1] + strip.column;
    float* const to = operands.destination + place;
    EpilogueRow values{.bias_of_row = true};
    if (spec_.epilogue.has_bias) values.bias = operands.bias + filter;
    if (spec_.epilogue.residual == Residual::in_destination) values.residual = to;
    if (spec_.epilogue.residual == Residual::separate) values.residual = operands.residual + place;
    finish_row(spec_.epilogue, values, product, to, memory.workspace, static_cast<std::size_t>(numbers));
  }
}
