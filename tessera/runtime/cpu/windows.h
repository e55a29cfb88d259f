// The windows of a convolution as the columns of a matrix.
#pragma once

#include "tessera/runtime/cpu/convolution.h"

namespace tessera::runtime::cpu {

/// Writes `count` windows of one image, beginning with that of the result's element `position` (row-major),
/// as columns: out [channels, window…, count]. `channels` are those of one group, `source` is their first.
void gather_windows(const ConvolutionSpec& spec, const float* source, std::int64_t channels,
                    std::int64_t position, std::int64_t count, float* out);

}  // namespace tessera::runtime::cpu
