#include "tessera/runtime/cuda/step_layout.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

using Places = std::vector<std::uint32_t>;

class LayoutWriter {
 public:
  explicit LayoutWriter(std::span<const StepParts> steps) : steps_(steps), ends_(steps.size()) {
    out_.places.resize(steps.size());
    std::uint32_t bodies = 1;
    for (const StepParts& part : steps)
      if (part.step->kind == GraphStep::Kind::region)
        bodies = std::max(bodies, part.step->first_body + part.step->region.bodies);
    of_body_.resize(bodies);
    for (std::uint32_t i = 0; i < steps.size(); ++i) of_body_[steps[i].step->body].push_back(i);
  }

  Result<StepLayout> run() {
    TESSERA_TRY(add_body(0, 0));
    return std::move(out_);
  }

 private:
  Result<void> add_body(std::uint32_t body, std::uint32_t depth) {
    if (depth > deepest_regions)
      return Error(ErrorCode::unsupported, cat("regions nest deeper than ", deepest_regions));
    for (const std::uint32_t step : of_body_[body]) {
      if (depth == 0) outermost_ = step;
      TESSERA_TRY(add_step(step, depth));
    }
    return {};
  }

  Result<void> add_step(std::uint32_t i, std::uint32_t depth) {
    const StepParts& part = steps_[i];
    Places before;
    for (const std::uint32_t step : part.step->after)
      before.insert(before.end(), ends_[step].begin(), ends_[step].end());
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (part.step->kind == GraphStep::Kind::region) return add_region(i, std::move(before), depth);
    for (const BoundLaunch& launch : part.launches) before = {add(i, launch, std::move(before))};
    ends_[i] = std::move(before);
    return {};
  }

  Result<void> add_region(std::uint32_t i, Places before, std::uint32_t depth) {
    const GraphStep& step = *steps_[i].step;
    const std::uint32_t condition = ++conditions_;
    const bool is_loop = steps_[i].launches.size() == 2;
    const auto decision = [&](std::size_t which) {
      BoundLaunch out = steps_[i].launches[which];
      out.condition = condition;
      return out;
    };
    const std::uint32_t decided = add(i, decision(0), std::move(before));
    BoundLaunch node{.kind = BoundLaunch::Kind::conditional, .condition = condition};
    node.conditional = {is_loop ? Conditional::Kind::loop : Conditional::Kind::choice, step.first_body,
                        step.region.bodies};
    const std::uint32_t place = add(i, std::move(node), {decided});
    ends_[i] = {place};
    out_.places[i].pop_back();  // none of the step's launches: what is patched are the decisions
    for (std::uint32_t body = 0; body < step.region.bodies; ++body)
      TESSERA_TRY(add_body(step.first_body + body, depth + 1));
    if (is_loop) add(i, decision(1), last_of(step.first_body, place), step.first_body);
    return {};
  }

  /// The launches of a body, all behind `node`, that no other of it waits for.
  [[nodiscard]] Places last_of(std::uint32_t body, std::uint32_t node) const {
    const auto end = static_cast<std::uint32_t>(out_.launches.size());
    std::vector<bool> is_waited_for(end - node, false);
    Places out;
    for (std::uint32_t i = node + 1; i < end; ++i)
      if (out_.launches[i].graph == body)
        for (const std::uint32_t before : out_.after[i]) is_waited_for[before - node] = true;
    for (std::uint32_t i = node + 1; i < end; ++i)
      if (out_.launches[i].graph == body && !is_waited_for[i - node]) out.push_back(i);
    return out;
  }

  std::uint32_t add(std::uint32_t step, BoundLaunch launch, Places after) {
    return add(step, std::move(launch), std::move(after), steps_[step].step->body);
  }
  std::uint32_t add(std::uint32_t step, BoundLaunch launch, Places after, std::uint32_t graph) {
    const auto place = static_cast<std::uint32_t>(out_.launches.size());
    launch.graph = graph;
    out_.launches.push_back(std::move(launch));
    out_.after.push_back(std::move(after));
    out_.owner.push_back(step);
    out_.outermost.push_back(outermost_);
    out_.places[step].push_back(place);
    return place;
  }

  std::span<const StepParts> steps_;
  std::vector<Places> of_body_;  ///< steps
  std::vector<Places> ends_;     ///< by step: what is waited for by those behind it
  std::uint32_t conditions_ = 0;
  std::uint32_t outermost_ = 0;
  StepLayout out_;
};

}  // namespace

Result<StepLayout> tessera::runtime::cuda::lay_out(std::span<const StepParts> steps) {
  return LayoutWriter(steps).run();
}
