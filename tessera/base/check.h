// TESSERA_CHECK: an invariant of Tessera itself. Nothing a caller or a file contains may reach a failing one.
//
// A failure throws Exception with code `internal`; the public faces catch it like any other error, so that a
// bug in Tessera does not take the host program down.
#pragma once

#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

/// Throws Exception{ErrorCode::internal}. Called by TESSERA_CHECK only.
[[noreturn]] void check_failed(const char* condition, std::string_view message, const char* file, int line);

}  // namespace tessera

#define TESSERA_CHECK(condition, message)                                 \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::tessera::check_failed(#condition, (message), __FILE__, __LINE__); \
  } while (false)
