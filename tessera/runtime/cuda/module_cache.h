// From sources to functions on a device: compiled once, kept in memory and in files.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/runtime/code_store.h"
#include "tessera/runtime/cuda/device_function.h"
#include "tessera/runtime/cuda/nvrtc.h"
#include "tessera/runtime/cuda/user_functions.h"

namespace tessera::runtime::cuda {

/// How many of each kind of work were done: figures for tests and reports.
struct ModuleFigures {
  std::uint64_t compiled = 0;    ///< by the compiler
  std::uint64_t from_files = 0;  ///< of earlier processes
};

/// Thread-safe. A function that is handed out lives as long as somebody holds it.
class ModuleCache {
 public:
  /// Of functions that are launched on `stream`. `store` may be null and outlives the cache.
  ModuleCache(std::shared_ptr<const Stream> stream, std::shared_ptr<const SourceCompiler> compiler,
              const CodeStore* store, std::size_t limit = 4096)
      : stream_(std::move(stream)),
        compiler_(std::move(compiler)),
        store_(store),
        limit_(limit),
        users_(stream_) {}

  /// The functions of the sources, in their order, those of the program as their code is now. Those that are
  /// not known are made, several at a time on threads. If there are more than the limit, those that nobody
  /// holds are dropped.
  [[nodiscard]] Result<std::vector<FunctionRef>> get(std::span<const SourceRef> sources);

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] ModuleFigures figures() const;

 private:
  struct Entry {
    std::string key;
    FunctionRef function;
  };

  [[nodiscard]] std::string key_of(const Source& source) const;
  [[nodiscard]] FunctionRef find(const std::string& key) const;
  [[nodiscard]] FunctionRef keep(std::string key, FunctionRef function);
  [[nodiscard]] Result<FunctionRef> make(const Source& source, const std::string& key);
  [[nodiscard]] Result<FunctionRef> of_user(const Source& source);
  void drop_unused();

  std::shared_ptr<const Stream> stream_;
  std::shared_ptr<const SourceCompiler> compiler_;
  const CodeStore* store_;
  std::size_t limit_;
  UserFunctions users_;
  mutable std::mutex mutex_;
  std::unordered_map<Hash128, std::vector<Entry>> entries_;
  std::size_t count_ = 0;
  ModuleFigures figures_;
};

}  // namespace tessera::runtime::cuda
