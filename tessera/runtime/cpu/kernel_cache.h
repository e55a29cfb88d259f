// Compiled kernels by structure: equal kernels are compiled once, whoever asks.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tessera/runtime/cpu/compiled_kernel.h"

namespace tessera::runtime::cpu {

/// Thread-safe. A kernel that is handed out lives as long as somebody holds it.
class KernelCache {
 public:
  /// How kernels are found; for tests that force collisions.
  using HashFunction = Hash128 (*)(const kernel::Kernel&);

  explicit KernelCache(KernelOptions options = {}, std::size_t limit = 4096,
                       HashFunction hash = &kernel::hash)
      : options_(options), limit_(limit), hash_(hash) {}

  /// The one of this structure, made if there is none. If there are more than the limit, those that nobody
  /// holds are dropped.
  [[nodiscard]] std::shared_ptr<CompiledKernel> get(const kernel::Kernel& kernel);

  [[nodiscard]] std::size_t size() const;

  /// Why a kernel has no code, and why code could not be kept; empty if all have, and could.
  struct Troubles {
    std::string why_interpreted, why_not_stored;
  };
  [[nodiscard]] Troubles troubles() const;

 private:
  void drop_unused();

  KernelOptions options_;
  std::size_t limit_;
  HashFunction hash_;
  mutable std::mutex mutex_;
  std::unordered_map<Hash128, std::vector<std::shared_ptr<CompiledKernel>>> kernels_;
  std::size_t count_ = 0;
};

}  // namespace tessera::runtime::cpu
