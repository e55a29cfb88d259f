#include "tessera/runtime/cpu/schedule.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

double runtime::cpu::shared_ns(double alone, double threads) {
  return alone < least_shared_ns ? alone : join_ns + alone / (threads * share_efficiency);
}

std::vector<Wave> runtime::cpu::schedule(const plan::Plan& plan, std::span<const StepTime> times,
                                         unsigned threads) {
  return Scheduler(plan, times, threads).run();
}
