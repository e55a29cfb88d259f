// Which calls are made of every op on a device that compiles kernels: all ops and all ways, but few kernels,
// for each takes long to compile (cuda_ops_test.cpp has all dtypes on the emulator).
#pragma once

#include <string>
#include <vector>

#include "tests/support/op_samples.h"

namespace tessera::fixture {

/// What all of the calls below take together.
inline constexpr std::size_t most_kernels = 400;

struct DeviceCase {
  const Sample* sample = nullptr;
  ir::Dtype dtype = ir::Dtype::f32;
  Sample::Sizes sizes;
  std::string text;  ///< for messages
};

/// Samples of an op take the dtypes in turns, every other one the first again.
[[nodiscard]] std::vector<DeviceCase> calls_of_every_op();
/// In the dtypes of the calls, most of whose kernels they take.
[[nodiscard]] std::vector<DeviceCase> plans_of_every_op();
[[nodiscard]] std::vector<DeviceCase> calls_of_zero_and_many();
/// Axes of one element are left out of kernels, which are others then; those of pointwise ops all alike, so
/// few do.
[[nodiscard]] std::vector<DeviceCase> calls_of_one();

}  // namespace tessera::fixture
