// Engine: the owner of all state. One default engine is made on first use; tensors of two engines do not mix.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/base/job_queue.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/node.h"
#include "tessera/engine/plan_cache.h"
#include "tessera/engine/profiler.h"
#include "tessera/engine/report.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::engine {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

struct EngineOptions {
  /// Not for devices with memory of their own.
  runtime::AllocatorCallbacks allocator = {};
  std::uint64_t memory_limit = std::numeric_limits<std::uint64_t>::max();
  /// Called from any thread, one call at a time. Without it nothing is logged.
  std::function<void(LogLevel level, std::string_view message)> log = {};
  /// Of random tensors.
  std::uint64_t seed = 0;
  PlanOptions plans = {};
  /// How plans are made. Passes keep every bit unless more is allowed here; a device's fused kernels round
  /// where they are fused (the reference does not fuse).
  compiler::PlanOptions compile = {.pipeline = {.passes = {.floats = compiler::FloatRules::exact}}};
  /// Plans are measured against others that are predicted to be close (autotune.h), once per machine. What is
  /// taken may round otherwise, so it is not done where results are to be deterministic.
  bool autotune = false;
  /// Bits depend on the values and sizes alone: not on what was evaluated before, nor on threads or time. The
  /// first evaluation of a structure waits for its plan, and every set of sizes has its own. Without it, bits
  /// may change once when a structure gets its plan, on devices whose plans round otherwise than single ops.
  bool deterministic = false;
  /// Where calls and plans run (devices.h); without one, what TESSERA_DEVICE names, else the CPU.
  std::shared_ptr<runtime::Device> device = {};
};

struct EngineStatistics {
  std::uint64_t evaluations = 0;
  std::uint64_t kernels = 0;  ///< calls that were computed (views are not)
  std::uint64_t views = 0;    ///< calls that only looked at stored elements in another way
  std::uint64_t plans = 0;    ///< that are ready now
  std::uint64_t plans_made = 0;
  std::uint64_t evictions = 0;                       ///< plans dropped for want of room
  std::uint64_t demotions = 0;                       ///< plans that were slower than op by op
  std::array<std::uint64_t, tier_count> tiers = {};  ///< components by how they were run

  [[nodiscard]] std::uint64_t runs(Tier tier) const { return tiers[static_cast<std::size_t>(tier)]; }
  /// Components that ran as plans.
  [[nodiscard]] std::uint64_t planned() const {
    return std::accumulate(tiers.begin(), tiers.end(), std::uint64_t{0}) - runs(Tier::streamed);
  }
};

class GraphHandle;
struct EvaluationMemory;

/// Thread-safe. In the child of a fork of a process with an engine, values that are computed can be read, and all
/// else but the end is an error that says so (base/forked_child.h).
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> create(EngineOptions options = {});
  /// The engine that functions without an engine use.
  static const std::shared_ptr<Engine>& default_engine();
  /// Says how the default engine is made. False, and nothing is changed, if there is one already.
  [[nodiscard]] static bool configure_default(EngineOptions options);
  ~Engine();

  [[nodiscard]] runtime::MemoryFigures memory() const { return pool_->figures(); }
  void set_memory_limit(std::uint64_t bytes) { pool_->set_limit(bytes); }
  [[nodiscard]] EngineStatistics statistics() const;
  /// In the memory of the device.
  [[nodiscard]] Result<Ref<runtime::Buffer>> allocate(std::size_t bytes) { return pool_->allocate(bytes); }
  /// The elements of an array in host memory, in the memory of the device.
  [[nodiscard]] Result<Storage> copy_in(const op::Array& elements) {
    return runtime::copy_of(elements, *pool_);
  }
  /// Whether the host reads and writes the memory of the device through its addresses.
  [[nodiscard]] bool has_host_memory() const { return pool_->space() == nullptr; }
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

  /// The number of a named scope, made if it is new. `outer` is the number of the scope around it. Throws if
  /// there are 65,535 others: numbers are never given again.
  std::uint16_t block(std::uint16_t outer, std::string_view name);
  /// "encoder/layer1"; empty for 0, the outermost.
  [[nodiscard]] std::string block_name(std::uint16_t block) const;
  /// Of all, by number.
  [[nodiscard]] std::vector<std::string> block_names() const;

  /// Forgets what was measured and measures evaluations from now on, as far as the level says.
  void set_profiling(ProfilingLevel level) { profiler_.start(level); }
  [[nodiscard]] Profile profile() const { return profiler_.profile(); }

  /// Computes and stores the values of `nodes`, and of what is needed for them and still held. Nothing that
  /// is stored is computed again. On an error every value is as it was.
  [[nodiscard]] Result<void> evaluate(std::span<Node* const> nodes);

  // For programs that run on the engine beside its evaluations (plan_runner.h).
  [[nodiscard]] const std::shared_ptr<runtime::MemoryPool>& pool() const { return pool_; }
  [[nodiscard]] Profiler& profiler() { return profiler_; }
  [[nodiscard]] bool is_deterministic() const { return options_.deterministic; }
  [[nodiscard]] bool uses_plans() const { return options_.plans.enabled; }
  void count_plans_made(std::size_t count);
  /// Gives up the memory that plans keep for their next launch; false if there is none.
  [[nodiscard]] bool drop_idle_instances();
  /// A run is over: it is the last evaluation. The memory of `components` is changed for that of the report.
  void publish(std::vector<ComponentReport>& components);

  /// What the last evaluation that computed something did, and why, in words.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] EvaluationReport report() const;
  /// Waits until the device has done everything that evaluations gave it; nobody has to: what the host reads
  /// is waited for.
  [[nodiscard]] Result<void> synchronize() { return device_->synchronize(); }
  /// Waits until the plans that are being made beside the program are ready. In the child of a fork none are.
  void wait_for_plans() { queue_.wait(); }

  /// The lock under which nodes change.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  /// A number no walk under the lock used before. REQUIRES the lock.
  std::uint32_t next_epoch() { return ++epoch_; }

 private:
  friend class Evaluation;
  friend class GraphHandle;
  explicit Engine(EngineOptions options);

  /// A plan to be made.
  struct PlanJob {
    PlanEntryRef entry;
    Lifted lifted;
    std::vector<PlanEntryRef> replaced;
  };
  [[nodiscard]] Result<compiler::Planned> planned_for(const ir::FunctionRef& function);
  void make_plan(PlanJob& job) noexcept;
  void publish_plan(PlanJob& job, plan::PlanRef plan);
  void refuse_plan(PlanJob& job, const Error& error);
  void forget_plan(const PlanEntryRef& entry) noexcept;
  /// What gives way is to be freed outside the lock. REQUIRES the lock.
  void make_room_for_plans(std::vector<PlanEntryRef>& dropped);
  /// REQUIRES the lock.
  void drop_plan(const PlanEntryRef& entry) noexcept;
  [[nodiscard]] Result<void> evaluate_once(std::span<Node* const> nodes);
  [[nodiscard]] std::string difference_to_nearest(const ComponentReport& component) const;
  /// The lock, for what is asked from outside of an evaluation.
  [[nodiscard]] std::unique_lock<std::mutex> locked() const;
  void log_report();
  void log_line(const std::string& line) const;

  static constexpr std::size_t max_idle_memory = 8;

  EngineOptions options_;
  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::MemoryPool> pool_;  ///< of the device's memory

  mutable std::mutex mutex_;
  std::condition_variable evaluated_;  ///< an evaluation ended, or a plan is made
  std::uint32_t epoch_ = 0;
  EngineStatistics statistics_;
  RandomState random_;
  std::vector<std::string> blocks_{""};
  std::unordered_map<std::string, std::uint16_t> block_numbers_;  ///< by path; of all but the outermost
  std::vector<Component*> watched_;  ///< of graph handles that are alive: their nodes keep their inputs

  PlanCache plans_;
  FunctionNumbers functions_;
  EvaluationReport report_;
  Profiler profiler_;
  std::vector<std::unique_ptr<EvaluationMemory>> idle_memory_;
  bool log_plans_ = false;                 ///< one line per evaluation
  std::vector<std::string> logged_lacks_;  ///< of the device

  mutable std::mutex log_mutex_;
  JobQueue queue_;  ///< last: its thread uses all of the above
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
