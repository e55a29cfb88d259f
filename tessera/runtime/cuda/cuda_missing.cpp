// In builds without CUDA's headers.
#include "tessera/runtime/cuda/cuda_devices.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

Error missing() { return {ErrorCode::unsupported, "this build has no CUDA: its headers were not found"}; }

}  // namespace

Result<int> runtime::cuda::device_count() { return missing(); }

Result<std::shared_ptr<Device>> runtime::cuda::open_device(int, CudaOptions) { return missing(); }
