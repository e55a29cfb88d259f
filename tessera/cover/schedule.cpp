#include "tessera/cover/schedule.h"

#include <functional>
#include <numeric>
#include <queue>

using namespace tessera::cover;

namespace {

/// Then the numbers themselves are the order: at each step the smallest that is ready comes next.
bool is_numbered_in_order(const Precedence& graph, std::span<const std::uint32_t> group_of) {
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    for (std::uint32_t input : graph.inputs[node])
      if (group_of[input] > group_of[node]) return false;
  return true;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> tessera::cover::schedule(const Precedence& graph,
                                                                   std::span<const std::uint32_t> group_of,
                                                                   std::uint32_t groups) {
  std::vector<std::uint32_t> order;
  if (is_numbered_in_order(graph, group_of)) {
    order.resize(groups);
    std::iota(order.begin(), order.end(), 0U);
    return order;
  }
  std::vector<Edge> members;
  std::vector<std::uint32_t> waiting(groups, 0);  // edges into the group that are not served yet
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    members.push_back({group_of[node], node});
    for (std::uint32_t input : graph.inputs[node])
      if (group_of[input] != group_of[node]) ++waiting[group_of[node]];
  }
  const Rows nodes_of(std::max(groups, graph.size()), members);

  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t group = 0; group < groups; ++group)
    if (waiting[group] == 0) ready.push(group);
  order.reserve(groups);
  while (!ready.empty()) {
    const std::uint32_t group = ready.top();
    ready.pop();
    order.push_back(group);
    for (std::uint32_t node : nodes_of[group])
      for (std::uint32_t output : graph.outputs[node])
        if (group_of[output] != group && --waiting[group_of[output]] == 0) ready.push(group_of[output]);
  }
  if (order.size() != groups) return std::nullopt;
  return order;
}
