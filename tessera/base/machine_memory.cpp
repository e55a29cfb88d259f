#include "tessera/base/machine_memory.h"

#include <unistd.h>

std::uint64_t tessera::machine_memory() {
  static const std::uint64_t bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
