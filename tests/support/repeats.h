// How much a test tries.
#pragma once

namespace tessera::fixture {

/// Each step takes about ten times as long then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

/// So many random cases, rounds of a loop or links of a chain; a tenth under sanitizers: what they look for
/// is in few of them too, and what shows in many alone, the release build's tests look for.
template <class Count>
constexpr Count repeats(Count usual) {
  return is_sanitized ? usual / 10 : usual;
}

}  // namespace tessera::fixture
