// What is derived from constants, shared by the calls that read the same one: the steps of a recurrence
// written out have one matrix.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tessera/runtime/derived.h"

namespace tessera::runtime::cpu {

/// Thread-safe.
class ConstantSets {
 public:
  /// What is derived from the constant of so many bytes at `from`. REQUIRES that the constant lives as long
  /// as somebody holds it.
  [[nodiscard]] std::shared_ptr<DerivedSet> of(const void* from, std::size_t bytes);

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::weak_ptr<DerivedSet>> sets_;
};

}  // namespace tessera::runtime::cpu
