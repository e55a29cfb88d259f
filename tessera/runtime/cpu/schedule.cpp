#include "tessera/runtime/cpu/schedule.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

using namespace tessera;
using namespace tessera::runtime::cpu;
using plan::StepId;

namespace {

/// Steps that take less are not shared out among threads.
constexpr double least_shared_ns = 20'000;
/// What must be won: predictions are rough.
constexpr double worthwhile = 0.9;

constexpr std::uint32_t no_task = 0xffffffff;

class Scheduler {
 public:
  Scheduler(const plan::Plan& plan, std::span<const StepTime> times, unsigned threads)
      : plan_(plan), times_(times), threads_(threads), task_of_(plan.steps.size(), no_task) {}

  std::vector<Wave> run() {
    for (const StepId step : by_level()) add(step);
    close();
    return std::move(out_);
  }

 private:
  /// Steps of one level are independent; those of the next come behind them.
  [[nodiscard]] std::vector<StepId> by_level() const {
    const auto levels = plan::levels(plan_);
    std::vector<StepId> out(plan_.steps.size());
    std::iota(out.begin(), out.end(), 0);
    std::stable_sort(out.begin(), out.end(), [&](StepId a, StepId b) { return levels[a] < levels[b]; });
    return out;
  }

  /// Continues the task that the step depends on, begins another if it depends on none that is open, and a
  /// new wave if it depends on several.
  void add(StepId step) {
    if (!times_[step].can_share) {
      close();
      open_.tasks.push_back({step});
      return close();
    }
    std::uint32_t task = no_task;
    for (const plan::ValueId input : plan_.steps[step].inputs) {
      if (plan_.values[input].kind != plan::ValueKind::computed) continue;
      const std::uint32_t before = task_of_[plan_.values[input].index];
      if (before == no_task || before == task) continue;
      if (task != no_task) return begin_wave(step);
      task = before;
    }
    if (task == no_task) {
      task = static_cast<std::uint32_t>(open_.tasks.size());
      open_.tasks.emplace_back();
    }
    open_.tasks[task].push_back(step);
    task_of_[step] = task;
  }

  void begin_wave(StepId step) {
    close();
    open_.tasks.push_back({step});
    task_of_[step] = 0;
  }

  void close() {
    if (open_.tasks.empty()) return;
    open_.is_side_by_side = threads_ > 1 && open_.tasks.size() > 1 && side_by_side() < worthwhile * in_turn();
    for (const Task& task : open_.tasks)
      for (const StepId step : task) task_of_[step] = no_task;
    out_.push_back(std::move(open_));
    open_ = {};
  }

  /// Tasks are taken in their order by whoever is free.
  [[nodiscard]] double side_by_side() const {
    std::vector<double> busy(threads_, 0.0);
    for (const Task& task : open_.tasks) {
      double& first = *std::min_element(busy.begin(), busy.end());
      for (const StepId step : task) first += times_[step].nanoseconds;
    }
    return join_ns + *std::max_element(busy.begin(), busy.end());
  }

  [[nodiscard]] double in_turn() const {
    double out = 0;
    for (const Task& task : open_.tasks)
      for (const StepId step : task) out += shared_ns(times_[step].nanoseconds, threads_);
    return out;
  }

  const plan::Plan& plan_;
  std::span<const StepTime> times_;
  const unsigned threads_;
  std::vector<std::uint32_t> task_of_;  ///< by step: its task in the open wave
  Wave open_;
  std::vector<Wave> out_;
};

/// The steps one behind the other as waves have them, and what each waits for: the step before it in its
/// task, or all of the wave before.
class WaveOrder {
 public:
  explicit WaveOrder(std::span<const Wave> waves) {
    std::vector<std::uint32_t> ends;  // of the wave before
    for (const Wave& wave : waves) {
      std::vector<std::uint32_t> own_ends;
      for (const Task& task : wave.tasks) {
        if (!wave.is_side_by_side && !own_ends.empty()) ends = std::exchange(own_ends, {});
        for (std::size_t i = 0; i < task.size(); ++i) add(task[i], i == 0 ? ends : std::vector{last()});
        own_ends.push_back(last());
      }
      ends = std::move(own_ends);
    }
  }

  [[nodiscard]] std::uint32_t position(StepId step) const { return position_.at(step); }
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& waits() const { return waits_; }

 private:
  [[nodiscard]] std::uint32_t last() const { return static_cast<std::uint32_t>(waits_.size() - 1); }
  void add(StepId step, std::vector<std::uint32_t> waits) {
    if (position_.size() <= step) position_.resize(step + 1, 0);
    position_[step] = static_cast<std::uint32_t>(waits_.size());
    waits_.push_back(std::move(waits));
  }

  std::vector<std::uint32_t> position_;            ///< by step
  std::vector<std::vector<std::uint32_t>> waits_;  ///< by position
};

}  // namespace

double runtime::cpu::shared_ns(double alone, double threads) {
  return alone < least_shared_ns ? alone : join_ns + alone / (threads * share_efficiency);
}

std::vector<Wave> runtime::cpu::schedule(const plan::Plan& plan, std::span<const StepTime> times,
                                         unsigned threads) {
  return Scheduler(plan, times, threads).run();
}

bool runtime::cpu::has_side_by_side(std::span<const Wave> waves) {
  return std::any_of(waves.begin(), waves.end(), [](const Wave& wave) { return wave.is_side_by_side; });
}

double runtime::cpu::part_side_by_side(std::span<const Wave> waves, std::span<const StepTime> times) {
  double all = 0, beside = 0;
  for (const Wave& wave : waves)
    for (const Task& task : wave.tasks)
      for (const StepId step : task) {
        all += times[step].nanoseconds;
        if (wave.is_side_by_side) beside += times[step].nanoseconds;
      }
  return all == 0 ? 0 : beside / all;
}

std::vector<Wave> runtime::cpu::narrowed(std::vector<Wave> waves, unsigned threads) {
  std::vector<Wave> out;
  for (Wave& wave : waves) {
    if (!wave.is_side_by_side || wave.tasks.size() <= threads) {
      out.push_back(std::move(wave));
      continue;
    }
    for (std::size_t begin = 0; begin < wave.tasks.size(); begin += threads) {
      const std::size_t count = std::min<std::size_t>(threads, wave.tasks.size() - begin);
      out.push_back({.tasks = {}, .is_side_by_side = count > 1});
      std::move(wave.tasks.begin() + static_cast<std::ptrdiff_t>(begin),
                wave.tasks.begin() + static_cast<std::ptrdiff_t>(begin + count),
                std::back_inserter(out.back().tasks));
    }
  }
  return out;
}

MemoryLayout runtime::cpu::lay_out(std::span<const LiveRange> ranges, std::span<const Wave> waves) {
  const WaveOrder order(waves);
  std::vector<LiveRange> in_waves(ranges.begin(), ranges.end());
  for (LiveRange& range : in_waves) {
    range.first = order.position(range.first);
    for (std::uint32_t& read : range.reads) read = order.position(read);
    std::sort(range.reads.begin(), range.reads.end());
  }
  return tessera::lay_out(in_waves, order.waits().size(), StepOrder(order.waits()));
}
