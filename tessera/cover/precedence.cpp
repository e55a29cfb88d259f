#include "tessera/cover/precedence.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cover;

Rows Rows::transposed() const {
  Rows out;
  out.begin_.assign(begin_.size(), 0);
  for (std::uint32_t item : items_) ++out.begin_[item + 1];
  std::partial_sum(out.begin_.begin(), out.begin_.end(), out.begin_.begin());
  out.items_.resize(items_.size());
  std::vector<std::uint32_t> cursor(out.begin_.begin(), out.begin_.end() - 1);
  for (std::uint32_t row = 0; row < size(); ++row)
    for (std::uint32_t item : (*this)[row]) out.items_[cursor[item]++] = row;
  return out;
}

void Rows::drop_repeats() {
  std::uint32_t kept = 0;
  std::uint32_t from = 0;
  for (std::uint32_t row = 0; row < size(); ++row) {
    const std::uint32_t to = begin_[row + 1];
    const std::uint32_t row_begin = kept;
    for (; from < to; ++from)
      if (kept == row_begin || items_[kept - 1] != items_[from]) items_[kept++] = items_[from];
    begin_[row + 1] = kept;
  }
  items_.resize(kept);
}

Rows::Rows(std::uint32_t count, std::span<const Edge> edges) {
  begin_.assign(count + std::size_t{1}, 0);
  for (const Edge& edge : edges) ++begin_[edge.consumer + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  items_.resize(edges.size());
  std::vector<std::uint32_t> cursor(begin_.begin(), begin_.end() - 1);
  for (const Edge& edge : edges) items_[cursor[edge.consumer]++] = edge.producer;
  *this = transposed();  // transposing visits rows in order, so its rows come out ascending
  drop_repeats();
}

Precedence tessera::cover::make_precedence(std::uint32_t count, std::span<const Edge> edges) {
  Precedence out;
  out.outputs = Rows(count, edges);
  out.inputs = out.outputs.transposed();
  return out;
}

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
  cycle.push_back(node);
  std::ranges::reverse(cycle);
  return Error(ErrorCode::cycle, cat("the edges form a cycle: ", shortened(join(cycle, " -> "), 200)));
}

bool is_numbered_in_order(const Precedence& graph) {
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    if (!graph.inputs[node].empty() && graph.inputs[node].back() >= node) return false;
  return true;
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

std::vector<std::uint32_t> tessera::cover::inverse(std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> position(order.size());
  for (std::uint32_t p = 0; p < order.size(); ++p) position[order[p]] = p;
  return position;
}

Precedence tessera::cover::renumbered(const Precedence& graph, std::span<const std::uint32_t> order) {
  const std::vector<std::uint32_t> position = inverse(order);
  std::vector<Edge> edges;
  for (std::uint32_t p = 0; p < order.size(); ++p)
    for (std::uint32_t input : graph.inputs[order[p]]) edges.push_back({position[input], p});
  return make_precedence(graph.size(), edges);
}
