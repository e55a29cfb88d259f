#include "tessera/runtime/cuda/context.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

Current::~Current() {
  CUcontext popped = nullptr;
  if (driver_ != nullptr) driver_->cuCtxPopCurrent(&popped);
}

Result<std::shared_ptr<const Context>> Context::open(const Driver& driver, int number) {
  const ForeignOpening opening;  // of what the driver loads for a context
  if (!opening.is_inside())
    return Error(ErrorCode::device, "no GPU is opened while the program ends, nor in the child of a fork");
  int count = 0;
  TESSERA_CUDA(driver, cuDeviceGetCount, &count);
  if (number < 0 || number >= count)
    return Error(ErrorCode::not_found, cat("there is no GPU ", number, ", the driver has ", count));
  CUdevice device = 0;
  TESSERA_CUDA(driver, cuDeviceGet, &device, number);
  const std::shared_ptr<Context> out(new Context(driver, device));
  TESSERA_CUDA(driver, cuDevicePrimaryCtxRetain, &out->handle_, device);
  TESSERA_TRY(out->read_properties());
  return std::shared_ptr<const Context>(out);
}

Context::~Context() {
  if (handle_ != nullptr) driver_.cuDevicePrimaryCtxRelease(device_);
}

Result<void> Context::read_properties() {
  char name[256] = {};
  TESSERA_CUDA(driver_, cuDeviceGetName, name, sizeof name - 1, device_);
  name_ = name;
  int major = 0, minor = 0, shared = 0, multiprocessors = 0;
  TESSERA_CUDA(driver_, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
  TESSERA_CUDA(driver_, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
  TESSERA_CUDA(driver_, cuDeviceGetAttribute, &shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
               device_);
  TESSERA_CUDA(driver_, cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
               device_);
  std::size_t bytes = 0;
  TESSERA_CUDA(driver_, cuDeviceTotalMem, &bytes, device_);
  sm_ = major * 10 + minor;
  limits_.shared_bytes = std::max(usual_shared_bytes, static_cast<std::uint32_t>(std::max(shared, 0)));
  limits_.multiprocessors = static_cast<std::uint32_t>(std::max(multiprocessors, 1));
  memory_bytes_ = bytes;
  return {};
}

Result<Current> Context::enter() const {
  ForeignStay stay;
  if (!stay.is_inside()) {
    if (!is_ending_thread()) wait_for_program_end();
    return Error(ErrorCode::device, "the program ends: nothing more runs on a GPU");
  }
  CUcontext before = nullptr;
  TESSERA_CUDA(driver_, cuCtxGetCurrent, &before);
  if (before == handle_) return Current(std::move(stay), nullptr);
  if (before == nullptr) {
    TESSERA_CUDA(driver_, cuCtxSetCurrent, handle_);
    return Current(std::move(stay), nullptr);
  }
  TESSERA_CUDA(driver_, cuCtxPushCurrent, handle_);
  return Current(std::move(stay), &driver_);
}

Result<std::shared_ptr<const Stream>> Stream::create(ContextRef context) {
  const Driver& driver = context->driver();
  CUstream handle = nullptr;
  TESSERA_CUDA(driver, cuStreamCreate, &handle, CU_STREAM_NON_BLOCKING);
  return std::shared_ptr<const Stream>(new Stream(std::move(context), handle));
}

Stream::~Stream() {
  if (auto current = context_->enter()) context_->driver().cuStreamDestroy(handle_);
}

Result<void> Stream::wait() const {
  auto done =
      checked(context_->driver(), context_->driver().cuStreamSynchronize(handle_), "cuStreamSynchronize");
  if (!done) return blame(std::move(done).error());
  const std::lock_guard lock(mutex_);
  queued_count_ = 0;
  return {};
}

void Stream::note_queued(std::string_view what) const {
  const std::lock_guard lock(mutex_);
  Queued& place = queued_[queued_count_++ % queued_.size()];
  place.held = nullptr;
  place.copy.assign(what);
}

void Stream::note_queued(const std::shared_ptr<const std::string>& what) const {
  const std::lock_guard lock(mutex_);
  Queued& place = queued_[queued_count_++ % queued_.size()];
  if (place.held != what) place.held = what;
}

Error Stream::blame(Error error) const {
  const std::lock_guard lock(mutex_);
  if (queued_count_ == 0) return error;
  const std::uint64_t shown = std::min<std::uint64_t>(queued_count_, queued_.size());
  std::string list;
  for (std::uint64_t i = queued_count_ - shown; i < queued_count_; ++i) {
    const Queued& queued = queued_[i % queued_.size()];
    list += cat(list.empty() ? "" : "; ", queued.held != nullptr ? *queued.held : queued.copy);
  }
  return std::move(error).note(
      cat("queued since the last wait", shown < queued_count_ ? ", the end of it" : "", ": ", list));
}

Result<Event> Event::create(ContextRef context, unsigned flags) {
  CUevent handle = nullptr;
  TESSERA_CUDA(context->driver(), cuEventCreate, &handle, flags);
  return Event(std::move(context), handle);
}

Event::~Event() {
  if (handle_ == nullptr) return;
  if (auto current = context_->enter()) context_->driver().cuEventDestroy(handle_);
}

Result<void> Event::record(const Stream& stream) const {
  TESSERA_CUDA(context_->driver(), cuEventRecord, handle_, stream.handle());
  return {};
}

Result<double> Event::microseconds_since(const Event& earlier) const {
  float milliseconds = 0;
  TESSERA_CUDA(context_->driver(), event_elapsed_time, &milliseconds, earlier.handle_, handle_);
  return static_cast<double>(milliseconds) * 1000;
}
