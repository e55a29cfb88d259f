// Whether NVRTC takes a source, for tests. NVRTC needs no GPU; it is opened at run time.
#pragma once

#include <string>

#include "tessera/base/result.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Why there is no NVRTC here, or empty: for GTEST_SKIP.
[[nodiscard]] std::string why_no_nvrtc();

/// Compiles for an architecture ("sm_90") with the options that the runtime uses. Fails with NVRTC's log and
/// the numbered lines of the source.
[[nodiscard]] Result<void> check_by_nvrtc(const Source& source, const std::string& architecture);

}  // namespace tessera::runtime::cuda
