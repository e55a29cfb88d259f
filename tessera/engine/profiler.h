// Collects the times of evaluations while profiling is on. While it is off, an evaluation reads one level and
// no clock.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>

#include "tessera/engine/needed.h"
#include "tessera/engine/profile.h"
#include "tessera/plan/package.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/executable.h"

namespace tessera::engine {

/// What ran, without its times.
struct KernelSource {
  std::vector<ProfiledOp> ops;
  std::string block;

  [[nodiscard]] std::string name() const;  ///< "mul+add"
};

struct KernelRun {
  KernelSource source;
  runtime::TimedStep time;
};

/// The times of one evaluation.
struct EvaluationTimes {
  using Clock = std::chrono::steady_clock;

  ProfilingLevel level = ProfilingLevel::none;
  Clock::time_point begin, end;
  std::vector<KernelRun> kernels;

  [[nodiscard]] bool wants_kernels() const { return level >= ProfilingLevel::per_block; }
};

/// From what was run to what was recorded. A step of a plan knows lines and no blocks: it belongs to the
/// block of the nodes of its lines, or to the block around all of them.
class SourceLookup {
 public:
  /// Without blocks.
  SourceLookup() = default;
  /// `blocks` has the names of blocks by number.
  SourceLookup(const Needed& needed, std::span<const std::uint32_t> steps,
               std::span<const std::string> blocks);
  /// `blocks` outlive it.
  explicit SourceLookup(std::span<const plan::SourceBlock> blocks);

  [[nodiscard]] KernelSource of_node(const Node& node) const;
  [[nodiscard]] KernelSource of_step(const plan::Step& step) const;

 private:
  using Line = std::pair<std::string_view, std::uint32_t>;

  [[nodiscard]] std::string_view name_of(std::uint16_t block) const {
    return block < blocks_.size() ? std::string_view(blocks_[block]) : std::string_view();
  }

  void add_line(std::string_view file, std::uint32_t line, std::string_view block);

  std::span<const std::string> blocks_;
  std::map<Line, std::string_view> block_of_line_;
};

/// Thread-safe.
class Profiler {
 public:
  /// Forgets what was measured and goes on at this level.
  void start(ProfilingLevel level);
  [[nodiscard]] ProfilingLevel level() const { return level_.load(std::memory_order_relaxed); }
  void add(const EvaluationTimes& times);
  [[nodiscard]] Profile profile() const;

 private:
  using Clock = EvaluationTimes::Clock;

  std::uint32_t kernel_number(const KernelSource& source);
  void add_event(std::uint32_t kernel, const runtime::TimedStep& time);

  /// Room for events, some 24 MB.
  static constexpr std::size_t max_events = 1'000'000;

  std::atomic<ProfilingLevel> level_{ProfilingLevel::none};
  mutable std::mutex mutex_;
  Profile profile_;
  Clock::time_point began_;
  std::map<std::string, std::uint32_t> kernel_numbers_;
  std::map<std::thread::id, std::uint32_t> thread_numbers_;
};

}  // namespace tessera::engine
