// The one gate by which the driver's errors come in.
#pragma once

#include <string_view>

#include "tessera/base/result.h"
#include "tessera/runtime/cuda/driver.h"

namespace tessera::runtime::cuda {

/// The slow path of checked().
[[nodiscard]] Error driver_error(const Driver& driver, CUresult result, std::string_view what);

/// An error has the driver's own words; `what` is the function that was called. Code `memory` if there is
/// none left, else `device`.
[[nodiscard]] inline Result<void> checked(const Driver& driver, CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return driver_error(driver, result, what);
}

/// Whether the driver says that it does not take what it was given; other errors say that something else went
/// wrong, now or before.
[[nodiscard]] bool is_refusal(CUresult result);

/// The same as checked(), with code `unsupported` if it is a refusal.
[[nodiscard]] Result<void> checked_support(const Driver& driver, CUresult result, std::string_view what);

}  // namespace tessera::runtime::cuda

/// Calls a function of the driver, or returns its error: TESSERA_CUDA(driver, cuStreamSynchronize, stream).
#define TESSERA_CUDA(driver, function, ...) \
  TESSERA_TRY(::tessera::runtime::cuda::checked((driver), (driver).function(__VA_ARGS__), #function))
