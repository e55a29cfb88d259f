// Random graph descriptions: op nodes, kernels and captures in blocks and regions, over buffers of all
// lifetimes. The listing is an order that the rules allow, so that listed_run.h says what they mean. Most are
// valid.
#pragma once

#include "tessera/describe/builder.h"
#include "tests/differential/random_values.h"

namespace tessera::differential {

/// Kernels are called mix0, mix1, … and count_down, captures capture0, ….
inline constexpr int mix_kernels = 3;
inline constexpr int mix_captures = 2;

/// What kernels and captures of this salt do on the host.
[[nodiscard]] description::KernelFunction mixing_kernel(std::int64_t salt);
[[nodiscard]] description::CaptureFunction mixing_capture(std::int64_t salt);

[[nodiscard]] description::Description random_description(Random& random);

}  // namespace tessera::differential
