// In builds without cuBLASLt's header.
#include "tessera/runtime/cuda/blas.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

Result<std::unique_ptr<Blas>> Blas::open(const BlasDevice&) {
  return Error(ErrorCode::unsupported, "this build has no cuBLASLt: its header was not found");
}
