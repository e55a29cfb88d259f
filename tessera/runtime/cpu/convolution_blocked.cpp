// A convolution by our own matrix product.
#include <algorithm>

#include "tessera/runtime/cpu/convolution.h"
#include "tessera/runtime/cpu/windows.h"

using namespace tessera::runtime::cpu;

namespace {

/// Numbers of the windows that are gathered at once: they stay in the second cache.
constexpr std::int64_t most_gathered = 1 << 17;
constexpr std::int64_t least_positions = 64, most_positions = 1024;

}  // namespace

void Convolution::prepare_blocked() {
  implementation_ = "blocked";
  block_images_ = 1;
  batch_blocks_ = spec_.batch;
  most_positions_ =
      std::clamp(most_gathered / std::max<std::int64_t>(depth(), 1), least_positions, most_positions);
  const std::int64_t filters = spec_.filters / spec_.groups;
  scratch_bytes_ = (whole_lines_of_floats(depth() * most_positions_) +
                    whole_lines_of_floats(filters * padded_columns(most_positions_)) +
                    whole_lines_of_floats(most_positions_) + gemm_workspace(filters)) *
                   sizeof(float);
}

void Convolution::run_blocked(const ConvolutionOperands& operands, const Item& item, float* scratch) const {
  const std::int64_t end = (item.row + item.rows) * output_[1];
  for (std::int64_t group = 0; group < spec_.groups; ++group)
    for (std::int64_t position = item.row * output_[1]; position < end; position += most_positions_)
      multiply_windows(operands, item, group, position, std::min(most_positions_, end - position), scratch);
}

void Convolution::multiply_windows(const ConvolutionOperands& operands, const Item& item, std::int64_t group,
                                   std::int64_t position, std::int64_t count, float* scratch) const {
  const std::int64_t channels = spec_.channels / spec_.groups, result = output_[0] * output_[1];
  // Filters are shared out only where there is one group.
  const std::int64_t filters = spec_.groups == 1 ? item.filters : spec_.filters / spec_.groups;
  const std::int64_t filter = spec_.groups == 1 ? item.filter : group * filters;
  float* const windows = scratch;
  float* const product = windows + whole_lines_of_floats(depth() * most_positions_);
  float* const row = product + whole_lines_of_floats(filters * padded_columns(most_positions_));
  float* const workspace = row + whole_lines_of_floats(most_positions_);
  if (depth() > 0)
    gather_windows(
        spec_,
        operands.source + (item.image * spec_.channels + group * channels) * spec_.size[0] * spec_.size[1],
        channels, position, count, windows);
  const GemmBlock block{filters,
                        count,
                        depth(),
                        {operands.filters->own_.data() + filter * depth(), depth(), 1},
                        {windows, count, 1},
                        nullptr};
  multiply_blocked(block, {product, padded_columns(count)}, workspace);
  for (std::int64_t f = 0; f < filters; ++f) {
    const std::int64_t place = (item.image * spec_.filters + filter + f) * result + position;
    float* const to = operands.destination + place;
    EpilogueRow values{.bias_of_row = true};
    if (spec_.epilogue.has_bias) values.bias = operands.bias + filter + f;
    if (spec_.epilogue.residual == Residual::in_destination) values.residual = to;
    if (spec_.epilogue.residual == Residual::separate) values.residual = operands.residual + place;
    finish_row(spec_.epilogue, values, product + f * padded_columns(count), to, row,
               static_cast<std::size_t>(count));
  }
}
