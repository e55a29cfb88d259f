// How much a test of laws tries.
#pragma once

#include <cstdint>

namespace tessera::fixture {

/// Each case takes about ten times as long then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

/// So many random cases; a tenth under sanitizers.
constexpr std::uint64_t random_cases(std::uint64_t usual) { return is_sanitized ? usual / 10 : usual; }

}  // namespace tessera::fixture
