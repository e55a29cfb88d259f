// The gate between C and C++: what is thrown inside becomes a code and the thread's last error.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::capi {

/// An error that only C can make, with its code.
struct Failure {
  int code;
  std::string message;
  bool has_place = false;  ///< the message begins with one
};

template <class... Args>
[[noreturn]] void fail(int code, const Args&... args) {
  throw Failure{code, cat(args...), false};
}

/// The code of an error of the library.
[[nodiscard]] int code_of(ErrorCode code);
/// Where the C function that runs stands in the caller's program, as tsr_at said; an empty file if it did
/// not. The file is never freed.
struct Place {
  const char* file = "";
  std::uint32_t line = 0;
};
[[nodiscard]] Place place() noexcept;
void leave_place() noexcept;

/// Turns the exception being handled into a code and the last error. REQUIRES to be called in a catch block.
int report(const char* function) noexcept;

/// Runs the body of a C function; nothing it throws gets out. `function` begins the message.
template <class F>
int guard(const char* function, F&& body) noexcept {
  int code = 0;
  try {
    std::forward<F>(body)();
  } catch (...) {
    code = report(function);
  }
  leave_place();
  return code;
}

/// Fails if a pointer argument is null.
void require(const void* pointer, const char* name);
/// Fails if an array has a negative length, or is null and not empty.
void require_array(const void* array, int count, const char* name);

}  // namespace tessera::capi
