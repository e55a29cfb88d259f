// A library of matrix products for tests on machines without a GPU. It refuses what the real one refuses:
// addresses that are not aligned as was said, a workspace that is not.
#pragma once

#include "tessera/runtime/cuda/blas.h"

namespace tessera::runtime::cuda {

/// What tests want to see, and to change.
struct EmulatedBlasState {
  bool has_ends = true;                 ///< products with biases, sums and activations
  std::uint64_t products = 0;           ///< that were computed
  std::int64_t workspace_bytes = 4096;  ///< that each product needs
};
[[nodiscard]] EmulatedBlasState& emulated_blas_state();

[[nodiscard]] Result<std::unique_ptr<Blas>> open_emulated_blas(const BlasDevice& device);

}  // namespace tessera::runtime::cuda
