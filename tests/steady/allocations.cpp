#include "tests/steady/allocations.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "tessera/engine/devices.h"

namespace {

std::atomic<long> allocations{0};
std::atomic<long> inside_onednn{0};

/// Where the code of oneDNN lies, and of what it stands on. Asked for each allocation, so it must cost
/// nothing: a plan that seemed slow would be given up.
struct CodeRange {
  std::uintptr_t begin = 0, end = 0;
};
constexpr const char* foreign_libraries[] = {"libdnnl", "libgomp", "ld-linux"};
CodeRange foreign_code[std::size(foreign_libraries)];

void find_onednn() {
  const auto look = [](dl_phdr_info* info, std::size_t, void*) {
    for (std::size_t library = 0; library < std::size(foreign_libraries); ++library) {
      if (std::strstr(info->dlpi_name, foreign_libraries[library]) == nullptr) continue;
      for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        foreign_code[library] = {info->dlpi_addr + part.p_vaddr,
                                 info->dlpi_addr + part.p_vaddr + part.p_memsz};
      }
    }
    return 0;
  };
  dl_iterate_phdr(look, nullptr);
}

void count_for(const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  bool is_foreign = false;
  for (const CodeRange& code : foreign_code) is_foreign = is_foreign || (at >= code.begin && at < code.end);
  (is_foreign ? inside_onednn : allocations).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  using Function = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mmap"));
  allocations.fetch_add(1, std::memory_order_relaxed);
  return real(at, bytes, protection, flags, file, offset);
}
}

void* operator new(std::size_t bytes) {
  count_for(__builtin_return_address(0));
  void* const memory = __libc_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }

long tessera::fixture::allocation_count() { return allocations.load(); }

long tessera::fixture::settled_allocations(const std::function<void(int)>& evaluate) {
  for (int i = 0; i < 100; ++i) evaluate(i);
  value_or_throw(engine::find_device("cpu"))->settle();  // makes better code beside the program
  find_onednn();
  const long before = allocations.load();
  for (int i = 100; i < 1100; ++i) evaluate(i);
  return allocations.load() - before;
}
