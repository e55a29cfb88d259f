// While a function of the program computes a value, on any thread, it must not ask for values itself.
#pragma once

#include "tessera/engine/node.h"

namespace tessera::detail {

struct RunningScope {
  RunningScope() { ++engine::thread_state.custom_depth; }
  ~RunningScope() { --engine::thread_state.custom_depth; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
};

}  // namespace tessera::detail
