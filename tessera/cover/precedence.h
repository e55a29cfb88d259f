// The edges of a graph in compressed rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/cover/cover.h"

namespace tessera::cover {

/// For each row an ascending list of numbers without repeats.
class Rows {
 public:
  Rows() = default;
  /// Row `producer` lists its consumers. REQUIRES both ends of every edge < count.
  Rows(std::uint32_t count, std::span<const Edge> edges);

  /// Row `consumer` lists its producers. Nothing if the edges do not come by consumer, then by producer, each
  /// once. REQUIRES both ends of every edge < count.
  [[nodiscard]] static std::optional<Rows> from_sorted(std::uint32_t count, std::span<const Edge> edges);

  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t row) const {
    return {items_.data() + begin_[row], begin_[row + 1] - begin_[row]};
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  /// Row i lists the rows of this that contain i. REQUIRES all items < size().
  [[nodiscard]] Rows transposed() const;

 private:
  void drop_repeats();

  std::vector<std::uint32_t> begin_{0};
  std::vector<std::uint32_t> items_;
};

struct Precedence {
  Rows inputs;   ///< of a node: its producers
  Rows outputs;  ///< of a node: its consumers

  [[nodiscard]] std::uint32_t size() const { return inputs.size(); }
};

/// The number of the strongly connected component that each row is in, where row r leads to the items of row
/// r.
[[nodiscard]] std::vector<std::uint32_t> strong_components(const Rows& successors);

/// REQUIRES both ends of every edge < count. Linear in nodes and edges.
[[nodiscard]] Precedence make_precedence(std::uint32_t count, std::span<const Edge> edges);

/// The inverse of a permutation.
[[nodiscard]] std::vector<std::uint32_t> inverse(std::span<const std::uint32_t> order);

/// The graph with node order[p] called p.
[[nodiscard]] Precedence renumbered(const Precedence& graph, std::span<const std::uint32_t> order);

}  // namespace tessera::cover
