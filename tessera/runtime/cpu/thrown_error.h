// The gate between what throws for want of memory and what returns errors.
#pragma once

#include <new>
#include <utility>

#include "tessera/base/result.h"

namespace tessera::runtime::cpu {

/// What `run` returns; an error of code memory if it throws std::bad_alloc.
template <class F>
[[nodiscard]] auto memory_as_error(F&& run) -> decltype(run()) {
  try {
    return std::forward<F>(run)();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for what a computation needs beside its operands");
  }
}

}  // namespace tessera::runtime::cpu
