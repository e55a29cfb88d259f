#include "tessera/runtime/cuda/cuda_devices.h"

#include "tessera/base/job_queue.h"
#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

Result<int> count_devices() {
  const Driver* driver = TESSERA_TRY(Driver::open());
  int count = 0;
  TESSERA_CUDA(*driver, cuDeviceGetCount, &count);
  return count;
}

JobQueue& opening() {
  static auto& jobs = *new JobQueue;  // never destroyed
  return jobs;
}

/// A library of products takes 0.2 s until its first one: that goes on while the program prepares its data. A
/// program that ends before waits for it.
void open_products_beside(const std::shared_ptr<CudaDevice>& device) {
  device->expect_products();
  end_behind_openings();
  const auto open = [device] {
    const ForeignOpening opening;
    device->open_products();
  };
  if (!opening().push(open)) open();
}

}  // namespace

Result<int> runtime::cuda::device_count() {
  static auto& counted = *new Once<int>;  // never destroyed
  return counted.get(&count_devices);
}

Result<std::shared_ptr<Device>> runtime::cuda::open_device(int number, CudaOptions options) {
  const Driver* driver = TESSERA_TRY(Driver::open());
  auto compiler = TESSERA_TRY(Nvrtc::open());
  const auto device =
      TESSERA_TRY(CudaDevice::create(*driver, number, std::move(compiler), std::move(options)));
  open_products_beside(device);
  return std::shared_ptr<Device>(device);
}
