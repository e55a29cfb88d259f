#include "tessera/base/large_pages.h"

#include <cstdlib>
#include <new>

#include "tessera/base/machine_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace tessera;

void FreeMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

MemoryBlock tessera::allocate_block(std::size_t bytes) {
  // The system may promise more than there is, and end the process that uses it.
  if (bytes > machine_memory()) throw std::bad_alloc();
  const std::size_t alignment = bytes >= large_page_bytes ? large_page_bytes : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  // A hint: the kernel may refuse it, and small pages then serve.
  if (alignment == large_page_bytes) (void)madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return MemoryBlock(memory);
}
