#include "tessera/cover/precedence.h"

#include <algorithm>
#include <numeric>

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

std::optional<Rows> Rows::from_sorted(std::uint32_t count, std::span<const Edge> edges) {
  Rows out;
  out.begin_.assign(count + std::size_t{1}, 0);
  out.items_.reserve(edges.size());
  const Edge* before = nullptr;
  for (const Edge& edge : edges) {
    if (before != nullptr && (before->consumer > edge.consumer ||
                              (before->consumer == edge.consumer && before->producer >= edge.producer)))
      return std::nullopt;
    before = &edge;
    ++out.begin_[edge.consumer + 1];
    out.items_.push_back(edge.producer);
  }
  std::partial_sum(out.begin_.begin(), out.begin_.end(), out.begin_.begin());
  return out;
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
  if (auto inputs = Rows::from_sorted(count, edges)) {
    out.inputs = *std::move(inputs);
    out.outputs = out.inputs.transposed();
    return out;
  }
  out.outputs = Rows(count, edges);
  out.inputs = out.outputs.transposed();
  return out;
}

std::vector<std::uint32_t> tessera::cover::inverse(std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> position(order.size());
  for (std::uint32_t p = 0; p < order.size(); ++p) position[order[p]] = p;
  return position;
}

Precedence tessera::cover::renumbered(const Precedence& graph, std::span<const std::uint32_t> order) {
  const std::vector<std::uint32_t> position = inverse(order);
  if (std::ranges::is_sorted(order)) return graph;
  std::vector<Edge> edges;
  for (std::uint32_t p = 0; p < order.size(); ++p)
    for (std::uint32_t input : graph.inputs[order[p]]) edges.push_back({position[input], p});
  return make_precedence(graph.size(), edges);
}
