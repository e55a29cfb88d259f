// What this process takes, by the count of the system.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace tessera::fixture {

inline constexpr std::int64_t MiB = std::int64_t{1} << 20;

/// Whether what is freed may be used again: address and thread sanitizers keep it, and memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool resident_is_judged = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool resident_is_judged = false;
#else
inline constexpr bool resident_is_judged = true;
#endif
#else
inline constexpr bool resident_is_judged = true;
#endif

/// Bytes of memory that are in use, as the system counts them.
inline std::int64_t resident_bytes() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return std::int64_t{resident} * sysconf(_SC_PAGESIZE);
}

inline double in_mebibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(MiB);
}

}  // namespace tessera::fixture
