#include "tessera/runtime/memory_pool.h"

#include "tessera/base/forked_child.h"
#include "tessera/base/large_pages.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

Error shares_nothing() {
  return Error(ErrorCode::unsupported, "the memory of the device is not shared with other libraries");
}

/// Of which a block of large memory consists.
std::size_t whole_pages(std::size_t bytes) {
  return (bytes + large_page_bytes - 1) / large_page_bytes * large_page_bytes;
}

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Buffer::Buffer(std::byte* data, std::size_t bytes)
    : data_(data), bytes_(bytes), version_(next_version()), derived_(bytes) {}

Result<void> MemorySpace::check_address(const std::byte*) const { return shares_nothing(); }
Result<void> MemorySpace::come_behind(StreamHandle) { return shares_nothing(); }
Result<void> MemorySpace::come_before(StreamHandle) { return shares_nothing(); }

Ref<Buffer> Buffer::wrap(void* data, std::size_t bytes, std::function<void()> release) {
  auto* buffer = new Buffer(static_cast<std::byte*>(data), bytes);
  buffer->release_ = std::move(release);
  return Ref<Buffer>(buffer);
}

Ref<Buffer> Buffer::wrap_in(std::shared_ptr<MemorySpace> space, void* data, std::size_t bytes,
                            std::function<void()> release) {
  auto* buffer = new Buffer(static_cast<std::byte*>(data), bytes);
  buffer->release_ = std::move(release);
  buffer->space_ = std::move(space);
  return Ref<Buffer>(buffer);
}

Ref<Buffer> Buffer::wrap_constant(const void* data, std::size_t bytes, std::function<void()> release) {
  auto* buffer = new Buffer(static_cast<std::byte*>(const_cast<void*>(data)), bytes);
  buffer->release_ = std::move(release);
  buffer->is_constant_ = true;
  return Ref<Buffer>(buffer);
}

MemorySpace* Buffer::space() const { return pool_ == nullptr ? space_.get() : pool_->space(); }

Buffer::~Buffer() {
  if (pool_ != nullptr && !is_forked_child()) pool_->give_back(data_, bytes_);
  if (!release_) return;
  try {
    release_();
  } catch (...) {  // see wrap()
  }
}

void Buffer::begin_write() const {
  version_.store(next_version(), std::memory_order_release);
  derived_.clear();
}

/// What is derived gives way to buffers, unless it is in use.
Result<Ref<Buffer>> MemoryPool::allocate(std::size_t bytes) {
  if (is_forked_child()) return forked_child_error();
  const std::uint64_t limit = limit_.load();
  const std::uint64_t before = used_.fetch_add(bytes);
  const auto passes_limit = [&] {
    return before + bytes > limit || before + bytes < before || derived_->bytes() > limit - before - bytes;
  };
  while (passes_limit())
    if (before + bytes > limit || before + bytes < before || !derived_->give_one_up(0)) {
      used_.fetch_sub(bytes);
      return Error(ErrorCode::memory, cat("a buffer of ", bytes, " bytes would pass the memory limit: ",
                                          before + derived_->bytes(), " of ", limit, " bytes are in use"));
    }
  if (before + bytes + derived_->bytes() + kept_bytes_.load(std::memory_order_relaxed) > limit) drop_kept();
  auto raw = raw_memory(bytes == 0 ? 1 : bytes);
  if (!raw) {
    used_.fetch_sub(bytes);
    return std::move(raw).error();
  }
  std::byte* memory = *raw;
  allocations_.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t peak = peak_.load();
  while (before + bytes > peak && !peak_.compare_exchange_weak(peak, before + bytes)) {
  }
  Buffer* buffer = nullptr;
  try {
    buffer = new Buffer(memory, bytes);
  } catch (...) {
    give_back(memory, bytes);
    throw;
  }
  buffer->pool_ = shared_from_this();
  return Ref<Buffer>(buffer);
}

Result<std::byte*> MemoryPool::raw_memory(std::size_t bytes) {
  if (space_ != nullptr) return space_->allocate(bytes);
  std::byte* memory = take_kept(bytes);
  if (memory == nullptr) memory = fresh_memory(bytes);
  if (memory == nullptr && kept_bytes_.load() > 0) {
    drop_kept();
    memory = fresh_memory(bytes);
  }
  while (memory == nullptr && derived_->give_one_up(0)) memory = fresh_memory(bytes);
  if (memory == nullptr) return Error(ErrorCode::memory, cat("no memory for a buffer of ", bytes, " bytes"));
  return memory;
}

bool MemoryPool::reserve_derived(std::size_t bytes) {
  const std::uint64_t limit = limit_.load();
  derived_->bytes_.fetch_add(bytes);
  for (;;) {
    const std::uint64_t all = used_.load() + derived_->bytes();
    if (all <= limit) {
      if (all + kept_bytes_.load(std::memory_order_relaxed) > limit) drop_kept();
      return true;
    }
    if (derived_->give_one_up(DerivedSet::min_rest)) continue;
    derived_->bytes_.fetch_sub(bytes);
    return false;
  }
}

std::byte* MemoryPool::fresh_memory(std::size_t bytes) noexcept {
  try {
    return callbacks_.allocate ? static_cast<std::byte*>(callbacks_.allocate(bytes))
                               : allocate_block(bytes).release();
  } catch (...) {  // functions of the embedding program may throw anything: they have no memory
    return nullptr;
  }
}

void MemoryPool::give_back(std::byte* memory, std::size_t bytes) noexcept {
  if (space_ != nullptr)
    space_->free(memory, bytes == 0 ? 1 : bytes);
  else if (callbacks_.free)
    callbacks_.free(memory, bytes == 0 ? 1 : bytes);
  else if (!keep(memory, bytes))
    FreeMemory()(memory);
  used_.fetch_sub(bytes);
}

// ---- what is kept

bool MemoryPool::keeps(std::size_t bytes) const {
  return bytes >= large_page_bytes && space_ == nullptr && !callbacks_.allocate && !callbacks_.free;
}

std::byte* MemoryPool::take_kept(std::size_t bytes) noexcept {
  if (!keeps(bytes) || kept_bytes_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(kept_mutex_);
  for (KeptBlock& block : kept_)
    if (block.memory != nullptr && block.bytes == whole_pages(bytes)) {
      kept_bytes_.fetch_sub(block.bytes);
      return block.memory.release();
    }
  return nullptr;
}

bool MemoryPool::keep(std::byte* memory, std::size_t bytes) noexcept {
  if (!keeps(bytes)) return false;
  const std::lock_guard lock(kept_mutex_);
  const std::uint64_t others = used_.load() - bytes;
  if (others + kept_bytes_.load() + bytes > peak_.load()) return false;
  for (KeptBlock& block : kept_)
    if (block.memory == nullptr) {
      block = {MemoryBlock(memory), whole_pages(bytes)};
      kept_bytes_.fetch_add(block.bytes);
      return true;
    }
  return false;
}

void MemoryPool::drop_kept() noexcept {
  const std::lock_guard lock(kept_mutex_);
  for (KeptBlock& block : kept_) block.memory.reset();
  kept_bytes_.store(0);
}

MemoryFigures MemoryPool::figures() const {
  return {.used = used_.load(),
          .kept = kept_bytes_.load(),
          .derived = derived_->bytes(),
          .peak = peak_.load(),
          .limit = limit_.load(),
          .allocations = allocations_.load()};
}
