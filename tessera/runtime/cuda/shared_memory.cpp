// Memory of a device that other libraries use too, and the order of their streams with ours.
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/device_memory.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::int32_t dlpack_cuda = 2;

CUstream handle_of(StreamHandle stream) { return reinterpret_cast<CUstream>(stream); }

}  // namespace

std::optional<MemoryLocation> DeviceMemory::location() const {
  return MemoryLocation{dlpack_cuda, context_->number()};
}

/// The driver knows all memory that its libraries give out.
Result<void> DeviceMemory::check_address(const std::byte* at) const {
  const Current current = TESSERA_TRY(context_->enter());
  const Driver& driver = context_->driver();
  int number = -1;
  const CUresult result =
      driver.cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_address(at));
  if (result == CUDA_ERROR_INVALID_VALUE)
    return Error(ErrorCode::invalid_argument, cat("the address is not in the memory of ", context_->name()));
  TESSERA_TRY(checked(driver, result, "cuPointerGetAttribute"));
  if (number == context_->number()) return {};
  return Error(ErrorCode::invalid_argument,
               cat("the address is in the memory of GPU ", number, ", expected GPU ", context_->number()));
}

Result<void> DeviceMemory::order(CUstream first, CUstream second) const {
  const Current current = TESSERA_TRY(context_->enter());
  const Driver& driver = context_->driver();
  for (CUstream stream : {first, second}) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    TESSERA_CUDA(driver, cuStreamIsCapturing, stream, &status);
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
      return Error(ErrorCode::invalid_argument,
                   "the stream is being captured, what it is given does not run");
  }
  const Event event = TESSERA_TRY(Event::create(context_, CU_EVENT_DISABLE_TIMING));
  TESSERA_CUDA(driver, cuEventRecord, event.handle(), first);
  TESSERA_CUDA(driver, cuStreamWaitEvent, second, event.handle(), 0);
  return {};
}

Result<void> DeviceMemory::come_behind(StreamHandle stream) {
  return order(handle_of(stream), stream_->handle());
}

Result<void> DeviceMemory::come_before(StreamHandle stream) {
  return order(stream_->handle(), handle_of(stream));
}

Result<void> DeviceMemory::finish() {
  const Current current = TESSERA_TRY(context_->enter());
  if (context_->driver().cuStreamQuery(stream_->handle()) == CUDA_SUCCESS) return {};
  return stream_->wait();
}
