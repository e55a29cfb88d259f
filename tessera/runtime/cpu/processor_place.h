// On which processors the workers of a pool run. Linux wakes a thread on the processor of the one that woke
// it if all of them were busy a moment ago: worker and caller then take turns on one while another is idle.
#pragma once

#include <span>
#include <thread>

namespace tessera::runtime::cpu {

/// One thread at a time. Where the system has no such notion, or forbids it, nothing happens.
class ProcessorPlace {
 public:
  /// Keeps the workers off the processor that this thread runs on. They may run on all others of those that
  /// the process was allowed when it first came here.
  void leave_to_caller(std::span<std::thread> workers);

 private:
  static constexpr int none = -1;
  int left_ = none;  ///< the processor that workers keep off
};

}  // namespace tessera::runtime::cpu
