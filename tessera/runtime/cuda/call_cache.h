// Calls that ran before, ready to be queued again: op by op, the same calls come again and again, and making
// a program takes longer than running it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/blas.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/module_cache.h"

namespace tessera::runtime::cuda {

/// A program with what its launches need, by launch; null where one needs none.
struct ReadyProgram {
  StepProgram program;
  std::vector<FunctionRef> functions;
  std::vector<BlasProductRef> products;
};
using ReadyProgramRef = std::shared_ptr<const ReadyProgram>;

/// All that the program of a call depends on: op, attributes, types, layouts, how addresses are aligned and
/// which arrays are one. Nothing if a size is a symbol.
using CallKey = std::vector<std::uint64_t>;
[[nodiscard]] std::optional<CallKey> call_key(const op::CallInfo& call, std::span<const op::Array> inputs,
                                              std::span<const op::Array> results);

/// Thread-safe. If there are too many, all are forgotten.
class CallCache {
 public:
  [[nodiscard]] ReadyProgramRef find(const CallKey& key) const;
  void keep(CallKey key, ReadyProgramRef program);
  [[nodiscard]] std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<CallKey, ReadyProgramRef>>> entries_;  ///< by hash
  std::size_t count_ = 0;
};

}  // namespace tessera::runtime::cuda
