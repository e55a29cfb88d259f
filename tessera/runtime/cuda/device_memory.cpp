#include "tessera/runtime/cuda/device_memory.h"

#include <bit>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::size_t smallest_class = 512;
/// The part of the device's memory that may lie unused here.
constexpr std::uint64_t kept_part = 4;

}  // namespace

Result<std::shared_ptr<const PinnedMemory>> PinnedMemory::create(ContextRef context, std::size_t bytes) {
  void* data = nullptr;
  TESSERA_CUDA(context->driver(), cuMemAllocHost, &data, bytes);
  return std::shared_ptr<const PinnedMemory>(new PinnedMemory(std::move(context), data));
}

PinnedMemory::~PinnedMemory() {
  if (const auto current = context_->enter()) context_->driver().cuMemFreeHost(data_);
}

DeviceMemory::DeviceMemory(ContextRef context, std::shared_ptr<const Stream> stream)
    : context_(std::move(context)),
      stream_(std::move(stream)),
      most_kept_(context_->memory_bytes() / kept_part) {}

DeviceMemory::~DeviceMemory() { trim(); }

std::size_t DeviceMemory::class_of(std::size_t bytes) {
  if (bytes <= smallest_class) return smallest_class;
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  const std::size_t part = step < smallest_class ? smallest_class : step;
  if (bytes > std::numeric_limits<std::size_t>::max() - part) return bytes;
  return (bytes + part - 1) / part * part;
}

std::byte* DeviceMemory::take_kept(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(size);
  if (found == kept_.end() || found->second.empty()) return nullptr;
  std::byte* out = found->second.back();
  found->second.pop_back();
  kept_bytes_ -= size;
  return out;
}

Result<std::byte*> DeviceMemory::allocate(std::size_t bytes) {
  const std::size_t size = class_of(bytes);
  if (std::byte* kept = take_kept(size)) return kept;
  const Driver& driver = context_->driver();
  const Current current = TESSERA_TRY(context_->enter());
  CUdeviceptr out = 0;
  CUresult result = driver.cuMemAlloc(&out, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    trim();
    result = driver.cuMemAlloc(&out, size);
  }
  if (result == CUDA_SUCCESS) return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(out));
  std::size_t free = 0, total = 0;
  if (result != CUDA_ERROR_OUT_OF_MEMORY || driver.cuMemGetInfo(&free, &total) != CUDA_SUCCESS)
    return driver_error(driver, result, "cuMemAlloc").note(cat("asking for ", size, " bytes"));
  return Error(ErrorCode::memory, cat("no memory for a buffer of ", bytes, " bytes on ", context_->name(),
                                      ": ", free, " of ", total, " bytes are free"));
}

void DeviceMemory::free(std::byte* memory, std::size_t bytes) noexcept {
  const std::size_t size = class_of(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + size <= most_kept_) {
      try {
        kept_[size].push_back(memory);
        kept_bytes_ += size;
        return;
      } catch (...) {  // no memory to remember it: it goes
      }
    }
  }
  const auto current = context_->enter();
  if (!current) return;
  static_cast<void>(stream_->wait().ok());  // its last user may not be done; what failed is told to others
  context_->driver().cuMemFree(device_address(memory));
}

Result<void> DeviceMemory::copy_in(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const Current current = TESSERA_TRY(context_->enter());
  TESSERA_CUDA(context_->driver(), cuMemcpyHtoDAsync, device_address(to), from.data(), from.size(),
               stream_->handle());
  return stream_->wait();  // page-locked memory is read later than the call returns
}

Result<void> DeviceMemory::copy_out(const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return {};
  const Current current = TESSERA_TRY(context_->enter());
  TESSERA_CUDA(context_->driver(), cuMemcpyDtoHAsync, to.data(), device_address(from), to.size(),
               stream_->handle());
  return stream_->wait();
}

Result<void> DeviceMemory::clear(std::byte* at, std::size_t bytes) {
  if (bytes == 0) return {};
  const Current current = TESSERA_TRY(context_->enter());
  TESSERA_CUDA(context_->driver(), cuMemsetD8Async, device_address(at), 0, bytes, stream_->handle());
  return {};
}

void DeviceMemory::trim() noexcept {
  const auto current = context_->enter();
  if (!current) return;
  static_cast<void>(stream_->wait().ok());
  const std::lock_guard lock(mutex_);
  for (const auto& [size, list] : kept_)
    for (const std::byte* memory : list) context_->driver().cuMemFree(device_address(memory));
  kept_.clear();
  kept_bytes_ = 0;
}

std::uint64_t DeviceMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}
