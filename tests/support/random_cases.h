// How much a test of laws tries.
#pragma once

#include <cstdint>

namespace tessera::fixture {

/// So many random cases; a tenth under sanitizers, where each takes about ten times as long.
constexpr std::uint64_t random_cases(std::uint64_t usual) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return usual / 10;
#else
  return usual;
#endif
}

}  // namespace tessera::fixture
