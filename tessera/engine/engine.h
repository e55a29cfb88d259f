// Engine: the owner of all state. One default engine is made on first use; tensors of two engines do not mix.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/engine/node.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::engine {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

struct EngineOptions {
  runtime::AllocatorCallbacks allocator = {};
  std::uint64_t memory_limit = std::numeric_limits<std::uint64_t>::max();
  /// Called from any thread, one call at a time. Without it nothing is logged.
  std::function<void(LogLevel level, std::string_view message)> log = {};
  /// Of random tensors.
  std::uint64_t seed = 0;
};

struct EngineStatistics {
  std::uint64_t evaluations = 0;
  std::uint64_t kernels = 0;  ///< calls that were computed (views are not)
  std::uint64_t views = 0;    ///< calls that only looked at stored elements in another way
};

class GraphHandle;

/// Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> create(EngineOptions options = {});
  /// The engine that functions without an engine use.
  static const std::shared_ptr<Engine>& default_engine();

  [[nodiscard]] runtime::MemoryFigures memory() const { return pool_->figures(); }
  void set_memory_limit(std::uint64_t bytes) { pool_->set_limit(bytes); }
  [[nodiscard]] EngineStatistics statistics() const;
  [[nodiscard]] Result<Ref<runtime::Buffer>> allocate(std::size_t bytes) { return pool_->allocate(bytes); }
  [[nodiscard]] runtime::Device& device() { return *device_; }
  void log(LogLevel level, std::string_view message) const;

  /// Random numbers: the seed, and the first of `count` counter values nobody else gets.
  struct RandomState {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
  };
  RandomState take_random(std::uint64_t count);
  void set_seed(std::uint64_t seed);
  [[nodiscard]] RandomState random_state() const;
  void set_random_state(RandomState state);

  /// The number of a named scope, made if it is new. `outer` is the number of the scope around it.
  std::uint16_t block(std::uint16_t outer, std::string_view name);
  /// "encoder/layer1"; empty for 0, the outermost.
  [[nodiscard]] std::string block_name(std::uint16_t block) const;

  /// Computes and stores the values of `nodes`, and of what is needed for them and still held. Nothing that
  /// is stored is computed again. On an error every value is as it was.
  [[nodiscard]] Result<void> evaluate(std::span<Node* const> nodes);

  /// The lock under which nodes change.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  /// A number no walk under the lock used before. REQUIRES the lock.
  std::uint32_t next_epoch() { return ++epoch_; }

 private:
  friend class Evaluation;
  friend class GraphHandle;
  explicit Engine(EngineOptions options);

  EngineOptions options_;
  std::shared_ptr<runtime::MemoryPool> pool_;
  std::unique_ptr<runtime::Device> device_;

  mutable std::mutex mutex_;
  std::condition_variable evaluated_;  ///< an evaluation ended
  std::uint32_t epoch_ = 0;
  EngineStatistics statistics_;
  RandomState random_;
  std::vector<std::string> blocks_{""};
  std::vector<Component*> watched_;  ///< of graph handles that are alive: their nodes keep their inputs

  mutable std::mutex log_mutex_;
};

/// What keeps the nodes of a graph whole: as long as it lives, evaluation does not drop inputs.
class GraphHandle {
 public:
  explicit GraphHandle(NodeRef root);
  ~GraphHandle();
  GraphHandle(const GraphHandle&) = delete;
  GraphHandle& operator=(const GraphHandle&) = delete;
  [[nodiscard]] const NodeRef& root() const { return root_; }

 private:
  NodeRef root_;
};

}  // namespace tessera::engine
