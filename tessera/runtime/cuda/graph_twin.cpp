#include "tessera/runtime/cuda/graph_twin.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

using Nodes = std::vector<std::uint32_t>;

struct TwinLaunches {
  std::vector<BoundLaunch> launches;
  std::vector<Nodes> after;
  Nodes from;  ///< by launch: that of the graph; of an event: the first of its step
};

void keep_each_once(Nodes& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

/// Writes a graph again with events around its steps. A step waits for the ends of those that it depends on:
/// steps stay in their order, so what is behind a step's first event is behind all of them.
class TwinWriter {
 public:
  TwinWriter(std::span<const BoundLaunch> launches, std::span<const Nodes> after)
      : launches_(launches), after_(after), place_(launches.size()), end_(launches.size()) {}

  void add_step(std::size_t begin, std::size_t end, const StepEvents& events) {
    Nodes before;
    for (std::size_t i = begin; i < end; ++i)
      for (const std::uint32_t node : after_[i])
        if (node < begin) before.push_back(end_[node]);
    keep_each_once(before);
    const std::uint32_t first = add(event(events.begin), std::move(before), begin);
    for (std::size_t i = begin; i < end; ++i) {
      Nodes inside;
      for (const std::uint32_t node : after_[i])
        if (node >= begin) inside.push_back(place_[node]);
      // What is in the body of a conditional waits for that by being there.
      if (inside.empty() && launches_[i].graph == 0) inside.push_back(first);
      place_[i] = add(launches_[i], std::move(inside), i);
    }
    const std::uint32_t last = add(event(events.end), all_between(first, out_.launches.size()), begin);
    std::fill(end_.begin() + static_cast<std::ptrdiff_t>(begin),
              end_.begin() + static_cast<std::ptrdiff_t>(end), last);
  }

  void add_join(std::size_t i) {
    Nodes before;
    for (const std::uint32_t node : after_[i]) before.push_back(end_[node]);
    keep_each_once(before);
    end_[i] = place_[i] = add(launches_[i], std::move(before), i);
  }

  TwinLaunches take() { return std::move(out_); }

 private:
  static BoundLaunch event(const Event& event) {
    return {.kind = BoundLaunch::Kind::event, .values = {reinterpret_cast<std::uintptr_t>(event.handle())}};
  }

  std::uint32_t add(BoundLaunch launch, Nodes after, std::size_t from) {
    out_.from.push_back(static_cast<std::uint32_t>(from));
    out_.launches.push_back(std::move(launch));
    out_.after.push_back(std::move(after));
    return static_cast<std::uint32_t>(out_.launches.size() - 1);
  }

  /// The launches of the graph itself behind `first` that no other of them waits for.
  [[nodiscard]] Nodes all_between(std::size_t first, std::size_t end) const {
    std::vector<bool> is_waited_for(end - first, false);
    for (std::size_t i = first + 1; i < end; ++i)
      for (const std::uint32_t node : out_.after[i]) is_waited_for[node - first] = true;
    Nodes out;
    for (std::size_t i = first; i < end; ++i)
      if (!is_waited_for[i - first] && out_.launches[i].graph == 0)
        out.push_back(static_cast<std::uint32_t>(i));
    return out;
  }

  std::span<const BoundLaunch> launches_;
  std::span<const Nodes> after_;
  Nodes place_;  ///< by launch: where it is in the twin
  Nodes end_;    ///< by launch: what others wait for
  TwinLaunches out_;
};

}  // namespace

Result<void> GraphTwin::set(std::span<const BoundLaunch> launches, std::span<const Nodes> after,
                            std::span<const std::uint32_t> steps, const LaunchBlame& blame) {
  TwinWriter writer(launches, after);
  std::size_t measured = 0;
  const auto is_join = [&](std::size_t i) { return launches[i].kind == BoundLaunch::Kind::join; };
  for (std::size_t begin = 0, end = 0; begin < launches.size(); begin = end) {
    end = begin + 1;
    if (is_join(begin)) {
      writer.add_join(begin);
      continue;
    }
    while (end < launches.size() && steps[end] == steps[begin]) ++end;
    if (measured == events_.size())
      events_.push_back(TESSERA_TRY(StepEvents::create(context_, steps[begin])));
    events_[measured].step = steps[begin];
    writer.add_step(begin, end, events_[measured++]);
  }
  const TwinLaunches twin = writer.take();
  const auto blame_original = [&](std::size_t launch, Error error) {
    return blame(twin.from[launch], std::move(error));
  };
  TESSERA_TRY(graph_.set(twin.launches, twin.after, blame_original));
  // The graph holds none of those that are left.
  while (events_.size() > measured) events_.pop_back();
  return {};
}
