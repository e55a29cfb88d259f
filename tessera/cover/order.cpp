#include "tessera/cover/order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// An error that names a cycle among the nodes that `waiting` still counts inputs for.
Error cycle_error(const Precedence& graph, std::span<const std::uint32_t> waiting) {
  std::uint32_t node = 0;
  while (waiting[node] == 0) ++node;
  // Every waiting node has a waiting input, so walking inputs long enough ends on a cycle.
  const auto waiting_input = [&](std::uint32_t of) {
    return *std::ranges::find_if(graph.inputs[of], [&](std::uint32_t input) { return waiting[input] != 0; });
  };
  for (std::uint32_t i = 0; i < graph.size(); ++i) node = waiting_input(node);
  std::vector<std::uint32_t> cycle{node};
  for (std::uint32_t at = waiting_input(node); at != node; at = waiting_input(at)) cycle.push_back(at);
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  cycle.push_back(cycle.front());
  return Error(ErrorCode::cycle, cat("the edges form a cycle: ", shortened(join(cycle, " -> "), 200)));
}

bool is_numbered_in_order(const Precedence& graph) {
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    if (!graph.inputs[node].empty() && graph.inputs[node].back() >= node) return false;
  return true;
}

/// What any order has to meet while it is inside the largest of the sets.
std::uint64_t least_frontier_size(std::span<const NodeSet> sets) {
  std::size_t largest = 0;
  for (const NodeSet set : sets) largest = std::max(largest, set.size());
  std::uint64_t total = 0;
  for (std::size_t ahead = 0; ahead < largest; ++ahead)
    total += std::uint64_t{1} << std::min<std::size_t>(ahead / 2, 30);
  return total;
}

}  // namespace

Result<std::vector<std::uint32_t>> tessera::cover::number_order(const Precedence& graph) {
  std::vector<std::uint32_t> order(graph.size());
  std::iota(order.begin(), order.end(), 0U);
  if (is_numbered_in_order(graph)) return order;

  order.clear();
  std::vector<std::uint32_t> waiting(graph.size());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    waiting[node] = static_cast<std::uint32_t>(graph.inputs[node].size());
    if (waiting[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (std::uint32_t consumer : graph.outputs[order.back()])
      if (--waiting[consumer] == 0) ready.push(consumer);
  }
  if (order.size() != graph.size()) return cycle_error(graph, waiting);
  return order;
}

std::vector<std::uint32_t> tessera::cover::chain_order(const Precedence& graph) {
  std::vector<std::uint32_t> order;
  order.reserve(graph.size());
  std::vector<std::uint32_t> waiting(graph.size());
  std::vector<std::uint32_t> ready;  // the last is taken first
  for (std::uint32_t node = graph.size(); node-- > 0;) {
    waiting[node] = static_cast<std::uint32_t>(graph.inputs[node].size());
    if (waiting[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    order.push_back(ready.back());
    ready.pop_back();
    const auto consumers = graph.outputs[order.back()];
    for (std::size_t i = consumers.size(); i-- > 0;)
      if (--waiting[consumers[i]] == 0) ready.push_back(consumers[i]);
  }
  return order;
}

std::vector<std::uint32_t> tessera::cover::demand_order(const Precedence& graph) {
  std::vector<std::uint32_t> order;
  order.reserve(graph.size());
  std::vector<std::uint8_t> seen(graph.size(), 0);
  struct Visit {
    std::uint32_t node;
    std::uint32_t next_input;
  };
  std::vector<Visit> path;
  const auto enter = [&](std::uint32_t node) {
    if (seen[node] != 0) return;
    seen[node] = 1;
    path.push_back({node, 0});
  };
  for (std::uint32_t sink = 0; sink < graph.size(); ++sink) {
    if (!graph.outputs[sink].empty()) continue;
    enter(sink);
    while (!path.empty()) {
      Visit& top = path.back();
      const auto inputs = graph.inputs[top.node];
      if (top.next_input < inputs.size()) {
        enter(inputs[top.next_input++]);
      } else {
        order.push_back(top.node);
        path.pop_back();
      }
    }
  }
  return order;
}

std::uint64_t tessera::cover::frontier_size(std::span<const std::uint32_t> order,
                                            std::span<const NodeSet> sets) {
  const std::vector<std::uint32_t> position = inverse(order);
  std::vector<std::uint32_t> begun(order.size());  // by position: where the first set with it begins
  std::iota(begun.begin(), begun.end(), 0U);
  for (const NodeSet set : sets) {
    std::uint32_t first = position[set[0]];
    for (std::uint32_t node : set) first = std::min(first, position[node]);
    for (std::uint32_t node : set) begun[position[node]] = std::min(begun[position[node]], first);
  }
  std::vector<std::uint32_t> beginning(order.size(), 0);
  for (std::uint32_t first : begun) ++beginning[first];
  std::uint64_t total = 0;
  std::uint32_t ahead = 0;
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    ahead = ahead + beginning[p] - 1;
    total += std::uint64_t{1} << std::min(ahead / 2, 30U);
  }
  return total;
}

Result<std::vector<std::uint32_t>> tessera::cover::choose_order(const Precedence& graph,
                                                                std::span<const NodeSet> sets,
                                                                Effort& effort) {
  std::vector<std::uint32_t> best = TESSERA_TRY(number_order(graph));
  if (sets.empty()) return best;
  std::uint64_t least = frontier_size(best, sets);
  constexpr std::uint64_t few_states = 4;  // for each node: no other order is worth the search
  if (least <= few_states * graph.size()) return best;
  const auto consider = [&](std::vector<std::uint32_t> other) {
    if (other == best) return;
    const std::uint64_t size = frontier_size(other, sets);
    if (size >= least) return;
    least = size;
    best = std::move(other);
  };
  consider(chain_order(graph));
  consider(demand_order(graph));
  // The last one takes longer to find, and is worth it only where it saves the walk.
  constexpr std::uint64_t states_per_node = 65536;
  constexpr std::size_t work_limit = 50'000'000;
  constexpr std::uint64_t pair_work = 20;
  const std::uint64_t most = states_per_node * graph.size();
  std::size_t work = 0;
  for (const NodeSet set : sets) work += set.size() * set.size();
  if (least <= most || work > work_limit || least_frontier_size(sets) > most) return best;
  if (!effort.leaves(2 * pair_work * work)) return best;
  effort.spend(pair_work * work);
  std::vector<std::uint32_t> narrow = narrow_order(graph, sets);
  if (frontier_size(narrow, sets) <= most) return narrow;
  return best;
}
