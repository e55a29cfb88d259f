#include "tessera/compile/order_steps.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "tessera/base/memory_layout.h"

using namespace tessera;
using plan::Plan;
using plan::Step;
using plan::StepId;
using plan::ValueId;
using plan::ValueKind;

namespace {

/// What each step takes and gives back, if it runs next.
class MemoryBalance {
 public:
  MemoryBalance(const Plan& plan, std::int64_t usual_size)
      : plan_(plan), root_(plan.values.size()), bytes_(plan.values.size()), readers_(plan.values.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    for (const Step& step : plan.steps) add(step, usual_size);
    // What the caller gets is never given back.
    for (const ValueId output : plan.outputs) bytes_[root_[output]] = 0;
  }

  [[nodiscard]] std::int64_t growth(StepId s) const {
    std::int64_t out = 0;
    for (const ValueId result : plan_.steps[s].results)
      if (root_[result] == result) out += bytes_[result];
    for (const ValueId root : roots_of(s))
      if (readers_[root] == 1) out -= bytes_[root];
    return out;
  }

  /// Tells `f` of each step that may give back more than before, now that this one ran.
  template <class F>
  void finish(StepId s, const std::vector<std::vector<StepId>>& readers_of, F&& f) {
    for (const ValueId root : roots_of(s))
      if (--readers_[root] == 1)
        for (const StepId other : readers_of[root]) f(other);
  }

  /// The steps that read each value or a view of it.
  [[nodiscard]] std::vector<std::vector<StepId>> readers() const {
    std::vector<std::vector<StepId>> out(plan_.values.size());
    for (StepId s = 0; s < plan_.steps.size(); ++s)
      for (const ValueId root : roots_of(s)) out[root].push_back(s);
    return out;
  }

  /// Most live bytes if the steps run in this order.
  [[nodiscard]] std::int64_t peak(const std::vector<StepId>& order) {
    const auto before = readers_;
    std::int64_t live = 0, most = 0;
    for (const StepId s : order) {
      std::int64_t taken = 0;
      for (const ValueId result : plan_.steps[s].results)
        if (root_[result] == result) taken += bytes_[result];
      most = std::max(most, live + taken);
      live += growth(s);
      for (const ValueId root : roots_of(s)) --readers_[root];
    }
    readers_ = before;
    return most;
  }

 private:
  void add(const Step& step, std::int64_t usual_size) {
    const bool is_view = step.kind == plan::StepKind::call && step.card->view != nullptr;
    for (const ValueId result : step.results) {
      if (is_view) root_[result] = root_[step.inputs[0]];
      if (root_[result] == result) bytes_[result] = bytes_of(plan_.values[result].type, usual_size);
    }
    std::vector<ValueId> roots;
    for (const ValueId input : step.inputs)
      if (plan_.values[root_[input]].kind == ValueKind::computed) roots.push_back(root_[input]);
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    for (const ValueId root : roots) ++readers_[root];
    roots_.insert(roots_.end(), roots.begin(), roots.end());
    ends_.push_back(roots_.size());
  }

  static std::int64_t bytes_of(const op::ValueType& type, std::int64_t usual_size) {
    constexpr std::int64_t most = std::int64_t{1} << 40;
    std::int64_t out = static_cast<std::int64_t>(ir::size_of(type.dtype));
    for (const op::Dim& dim : type.shape) {
      const auto size = ir::evaluate(dim, [&](const ir::Var&) { return std::optional(usual_size); });
      const std::int64_t count = std::clamp<std::int64_t>(size.value_or(usual_size), 0, most);
      out = count == 0 ? 0 : std::min(out, most / count) * count;
    }
    return static_cast<std::int64_t>(aligned_bytes(static_cast<std::uint64_t>(out)));
  }

  /// Whose memory a step reads, each once.
  [[nodiscard]] std::span<const ValueId> roots_of(StepId s) const {
    const std::size_t begin = s == 0 ? 0 : ends_[s - 1];
    return {roots_.data() + begin, ends_[s] - begin};
  }

  const Plan& plan_;
  std::vector<ValueId> root_;           ///< by value: whose memory it may look at
  std::vector<std::int64_t> bytes_;     ///< by value
  std::vector<std::uint32_t> readers_;  ///< by value: steps that still read its memory
  std::vector<ValueId> roots_;
  std::vector<std::size_t> ends_;  ///< by step: where its part of roots_ ends
};

std::vector<StepId> greedy_order(const Plan& plan, MemoryBalance& balance) {
  const auto waits = plan::dependencies(plan);
  const auto readers = balance.readers();
  std::vector<std::vector<StepId>> next(plan.steps.size());
  std::vector<std::size_t> missing(plan.steps.size());
  // Those that grow least first, then as they were listed. An entry may be out of date: the one that is right
  // is in the queue, too, before it.
  using Entry = std::pair<std::int64_t, StepId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (StepId s = 0; s < plan.steps.size(); ++s) {
    missing[s] = waits[s].size();
    for (const StepId wait : waits[s]) next[wait].push_back(s);
    if (missing[s] == 0) ready.push({balance.growth(s), s});
  }
  std::vector<bool> is_done(plan.steps.size());
  std::vector<StepId> out;
  while (!ready.empty()) {
    const StepId s = ready.top().second;
    ready.pop();
    if (is_done[s]) continue;
    is_done[s] = true;
    out.push_back(s);
    balance.finish(s, readers, [&](StepId other) {
      if (!is_done[other] && missing[other] == 0) ready.push({balance.growth(other), other});
    });
    for (const StepId after : next[s])
      if (--missing[after] == 0) ready.push({balance.growth(after), after});
  }
  return out;
}

void apply(Plan& plan, const std::vector<StepId>& order) {
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (const StepId s : order) {
    for (const ValueId result : plan.steps[s].results)
      plan.values[result].index = static_cast<std::uint32_t>(steps.size());
    steps.push_back(std::move(plan.steps[s]));
  }
  plan.steps = std::move(steps);
}

}  // namespace

std::size_t compiler::order_steps(Plan& plan) {
  constexpr std::int64_t usual_size = 64;
  std::vector<StepId> listed(plan.steps.size());
  std::iota(listed.begin(), listed.end(), 0);
  std::size_t moved = 0;
  std::int64_t peak = MemoryBalance(plan, usual_size).peak(listed);
  // What is found depends on the order that it starts from; each round needs less than the one before.
  while (true) {
    MemoryBalance balance(plan, usual_size);
    const std::vector<StepId> order = greedy_order(plan, balance);
    const std::int64_t after = MemoryBalance(plan, usual_size).peak(order);
    if (after >= peak) return moved;
    peak = after;
    for (std::size_t s = 0; s < order.size(); ++s) moved += order[s] != s ? 1 : 0;
    apply(plan, order);
  }
}
