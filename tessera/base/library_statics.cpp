#include "tessera/base/library_statics.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <span>

using namespace tessera;

#ifdef __x86_64__

namespace {

int destroy_never(void (*)(void*), void*, void*) { return 0; }

/// The tables of an opened library that say where the addresses of foreign functions are written to.
class Relocations {
 public:
  explicit Relocations(const link_map& library) : base_(library.l_addr) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) read(*entry);
  }

  /// Calls `f` with each place that holds the address of the function.
  template <class F>
  void for_each_place(const char* function, F&& f) const {
    if (names_ == nullptr || symbols_ == nullptr) return;
    for (const auto table : {calls(), others()})
      for (const ElfW(Rela) & entry : table) {
        const auto type = ELF64_R_TYPE(entry.r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(entry.r_info)];
        if (std::strcmp(names_ + symbol.st_name, function) == 0)
          f(reinterpret_cast<void**>(base_ + entry.r_offset));
      }
  }

 private:
  void read(const ElfW(Dyn) & entry) {
    const auto address = entry.d_un.d_ptr;  // the loader has added the base
    switch (entry.d_tag) {
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        names_ = reinterpret_cast<const char*>(address);
        break;
      case DT_JMPREL:
        calls_ = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_PLTRELSZ:
        call_bytes_ = entry.d_un.d_val;
        break;
      case DT_RELA:
        others_ = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_RELASZ:
        other_bytes_ = entry.d_un.d_val;
        break;
      case DT_RELACOUNT:
        nameless_ = entry.d_un.d_val;
        break;
      default:
        break;
    }
  }

  [[nodiscard]] std::span<const ElfW(Rela)> calls() const {
    return {calls_, calls_ == nullptr ? 0 : call_bytes_ / sizeof(ElfW(Rela))};
  }
  /// Without those at the front that have no name, which are nearly all.
  [[nodiscard]] std::span<const ElfW(Rela)> others() const {
    if (others_ == nullptr || nameless_ * sizeof(ElfW(Rela)) > other_bytes_) return {};
    return {others_ + nameless_, other_bytes_ / sizeof(ElfW(Rela)) - nameless_};
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Rela) * calls_ = nullptr, *others_ = nullptr;
  std::size_t call_bytes_ = 0, other_bytes_ = 0, nameless_ = 0;
};

/// The loader may have made the place read-only once it was written.
bool write_to(void** place, void* value) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / page * page);
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

bool tessera::keep_later_statics(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  std::size_t found = 0, written = 0;
  Relocations(*map).for_each_place("__cxa_atexit", [&](void** place) {
    ++found;
    if (write_to(place, reinterpret_cast<void*>(&destroy_never))) ++written;
  });
  return found > 0 && written == found;
}

#else

bool tessera::keep_later_statics(void*) { return false; }

#endif
