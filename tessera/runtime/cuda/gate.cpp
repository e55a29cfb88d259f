#include "tessera/runtime/cuda/gate.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

Error tessera::runtime::cuda::driver_error(const Driver& driver, CUresult result, std::string_view what) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (driver.cuGetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) words = "no words for it";
  const ErrorCode code = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::memory : ErrorCode::device;
  return {code, cat(what, ": ", name, " ", static_cast<int>(result), " (", words, ")")};
}

bool tessera::runtime::cuda::is_refusal(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED ||
         result == CUDA_ERROR_NOT_PERMITTED;
}

Result<void> tessera::runtime::cuda::checked_support(const Driver& driver, CUresult result,
                                                     std::string_view what) {
  auto done = checked(driver, result, what);
  if (done || !is_refusal(result)) return done;
  return Error(ErrorCode::unsupported, done.error().message());
}
