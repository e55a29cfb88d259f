// The gate between what throws (for want of memory, or at the end of a run's limits) and what returns errors.
#pragma once

#include <new>
#include <utility>

#include "tessera/base/result.h"

namespace tessera::runtime::cpu {

/// What `run` returns; an error of code memory if it throws std::bad_alloc, the error of an Exception.
template <class F>
[[nodiscard]] auto thrown_as_error(F&& run) -> decltype(run()) {
  try {
    return std::forward<F>(run)();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for what a computation needs beside its operands");
  } catch (const Exception& thrown) {
    return thrown.error();
  }
}

}  // namespace tessera::runtime::cpu
