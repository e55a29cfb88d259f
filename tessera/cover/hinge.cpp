#include "tessera/cover/hinge.h"

#include <algorithm>
#include <numeric>

using namespace tessera::cover;

namespace {

/// The edges inside one tile after another, in the tile's own numbering.
class TileInside {
 public:
  explicit TileInside(const Model& model) : model_(model), stamp_(model.size(), 0), local_(model.size()) {}

  /// Looks at another tile.
  void enter(const Tile& tile);
  [[nodiscard]] bool contains(std::uint32_t position) const { return stamp_[position] == stamps_; }
  /// Whether the i-th position has an input, or an output, outside.
  [[nodiscard]] bool is_entry(std::uint32_t i) const {
    return inner_inputs_[i] < model_.graph.inputs[positions_[i]].size();
  }
  [[nodiscard]] bool is_exit(std::uint32_t i) const {
    return inner_outputs_[i] < model_.graph.outputs[positions_[i]].size();
  }
  /// Whether every entry leads to every exit inside the tile.
  [[nodiscard]] bool passes_straight();

 private:
  void add_inner_inputs(std::uint32_t i);
  void add_edge(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool reach_all_exits(std::span<const std::uint32_t> entries);

  const Model& model_;
  std::vector<std::uint32_t> stamp_;  ///< by position: the tile that last held it
  std::vector<std::uint32_t> local_;
  std::uint32_t stamps_ = 0;
  std::span<const std::uint32_t> positions_;
  std::vector<std::uint32_t> inner_inputs_;
  std::vector<std::uint32_t> inner_outputs_;
  std::vector<Edge> edges_;  ///< ascending by consumer
  std::vector<std::uint32_t> entries_;
  std::vector<std::uint64_t> reached_;
};

void TileInside::enter(const Tile& tile) {
  positions_ = model_.positions_of(tile);
  ++stamps_;
  for (std::uint32_t i = 0; i < positions_.size(); ++i) {
    stamp_[positions_[i]] = stamps_;
    local_[positions_[i]] = i;
  }
  inner_inputs_.assign(positions_.size(), 0);
  inner_outputs_.assign(positions_.size(), 0);
  edges_.clear();
  for (std::uint32_t i = 0; i < positions_.size(); ++i) add_inner_inputs(i);
}

void TileInside::add_inner_inputs(std::uint32_t i) {
  const auto inputs = model_.graph.inputs[positions_[i]];
  if (inputs.size() <= 8 * positions_.size()) {
    for (std::uint32_t input : inputs)
      if (contains(input)) add_edge(local_[input], i);
  } else {  // one node with very many inputs must not cost that much for each tile it is in
    for (std::uint32_t j = 0; j < i; ++j)
      if (std::ranges::binary_search(inputs, positions_[j])) add_edge(j, i);
  }
}

void TileInside::add_edge(std::uint32_t from, std::uint32_t to) {
  edges_.push_back({from, to});
  ++inner_outputs_[from];
  ++inner_inputs_[to];
}

bool TileInside::passes_straight() {
  entries_.clear();
  bool has_exit = false;
  for (std::uint32_t i = 0; i < positions_.size(); ++i) {
    // Edges lead forward: an exit does not follow from an entry behind it.
    if (is_entry(i) && has_exit) return false;
    if (is_entry(i)) entries_.push_back(i);
    has_exit = has_exit || is_exit(i);
  }
  for (std::size_t at = 0; at < entries_.size(); at += 64)
    if (!reach_all_exits(std::span(entries_).subspan(at, std::min<std::size_t>(64, entries_.size() - at))))
      return false;
  return true;
}

/// REQUIRES at most 64 entries: each is one bit.
bool TileInside::reach_all_exits(std::span<const std::uint32_t> entries) {
  reached_.assign(positions_.size(), 0);
  for (std::size_t bit = 0; bit < entries.size(); ++bit) reached_[entries[bit]] = std::uint64_t{1} << bit;
  for (const Edge& edge : edges_) reached_[edge.consumer] |= reached_[edge.producer];
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - entries.size());
  for (std::uint32_t i = 0; i < positions_.size(); ++i)
    if (is_exit(i) && reached_[i] != all) return false;
  return true;
}

/// The graph with one more vertex per hinge: its entries lead to it, and it leads to what its exits lead to.
/// A cycle of a contracted graph is a cycle here, so its parts are in one strong component.
class CycleGraph {
 public:
  explicit CycleGraph(const Model& model) : model_(model) {
    for (std::uint32_t p = 0; p < model.size(); ++p)
      for (std::uint32_t output : model.graph.outputs[p]) edges_.push_back({p, output});
  }
  void add_hinge(const Tile& tile, const TileInside& inside);
  [[nodiscard]] std::vector<std::uint32_t> components() const {
    return strong_components(Rows(model_.size() + hinges_, edges_));
  }

 private:
  /// Beyond this many outputs the hinge leads to the exit itself: more is joined, and nothing grows
  /// quadratic.
  static constexpr std::size_t many = 64;

  const Model& model_;
  std::uint32_t hinges_ = 0;
  std::vector<Edge> edges_;
};

void CycleGraph::add_hinge(const Tile& tile, const TileInside& inside) {
  const std::uint32_t vertex = model_.size() + hinges_++;
  const auto positions = model_.positions_of(tile);
  for (std::uint32_t i = 0; i < positions.size(); ++i) {
    if (inside.is_entry(i)) edges_.push_back({positions[i], vertex});
    if (!inside.is_exit(i)) continue;
    const auto outputs = model_.graph.outputs[positions[i]];
    if (outputs.size() > many) edges_.push_back({vertex, positions[i]});
    for (std::uint32_t output : outputs.first(std::min(many, outputs.size())))
      if (!inside.contains(output)) edges_.push_back({vertex, output});
  }
}

}  // namespace

std::vector<std::uint32_t> tessera::cover::mark_hinges(Model& model) {
  TileInside inside(model);
  CycleGraph graph(model);
  std::vector<std::uint32_t> hinges;
  for (std::uint32_t i = 0; i < model.tiles.size(); ++i) {
    inside.enter(model.tiles[i]);
    if (inside.passes_straight()) continue;
    hinges.push_back(i);
    graph.add_hinge(model.tiles[i], inside);
  }
  std::vector<std::uint32_t> label(model.size());
  std::iota(label.begin(), label.end(), 0U);
  if (hinges.empty()) return label;

  label = graph.components();
  std::vector<std::uint32_t> members(label.size(), 0);
  for (std::uint32_t component : label) ++members[component];
  for (std::uint32_t i = 0; i < hinges.size(); ++i)
    model.tiles[hinges[i]].is_hinge = members[label[model.size() + i]] > 1;
  label.resize(model.size());
  return label;
}
