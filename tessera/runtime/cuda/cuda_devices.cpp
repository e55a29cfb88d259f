#include "tessera/runtime/cuda/cuda_devices.h"

#include "tessera/base/job_queue.h"
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
  static JobQueue jobs;
  return jobs;
}

/// Of the thread that opens a device, mostly the program's first. What belongs to a thread goes before what
/// is static: by then a library that is just being opened would take leave of the process already.
struct WaitsAtTheEnd {
  ~WaitsAtTheEnd() { opening().wait(); }
};

/// A library of products takes 0.2 s until its first one: that goes on while the program prepares its data. A
/// program that ends before waits for it, since libraries must not be opened while a process ends.
void open_products_beside(const std::shared_ptr<CudaDevice>& device) {
  device->expect_products();
  if (!opening().push([device] { device->open_products(); })) device->open_products();
  thread_local const WaitsAtTheEnd before_the_end;
  static_cast<void>(before_the_end);
}

}  // namespace

Result<int> runtime::cuda::device_count() {
  static const auto& only = *new Result<int>(count_devices());  // never destroyed
  return only;
}

Result<std::shared_ptr<Device>> runtime::cuda::open_device(int number, CudaOptions options) {
  const Driver* driver = TESSERA_TRY(Driver::open());
  auto compiler = TESSERA_TRY(Nvrtc::open());
  const auto device =
      TESSERA_TRY(CudaDevice::create(*driver, number, std::move(compiler), std::move(options)));
  open_products_beside(device);
  return std::shared_ptr<Device>(device);
}
