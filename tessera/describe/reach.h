// Reachability in a small directed acyclic graph, asked for a few nodes at a time. The work is bounded: when
// it is spent, every answer is "reached", which callers must be able to live with.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera::description {

class Reach {
 public:
  using Link = std::pair<std::uint32_t, std::uint32_t>;  ///< from, to

  Reach(std::size_t nodes, std::span<const Link> links);

  /// Marks everything that has a path to one of `targets`, in place of what was marked before.
  void mark_ancestors(std::span<const std::uint32_t> targets) { mark(before_, targets); }
  /// Marks everything that `source` has a path to.
  void mark_descendants(std::uint32_t source) { mark(after_, {&source, 1}); }
  [[nodiscard]] bool is_marked(std::uint32_t node) const { return exhausted() || stamp_[node] == current_; }

  [[nodiscard]] bool exhausted() const { return budget_ == 0; }

 private:
  /// Neighbours in one array, node by node.
  struct Rows {
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> items;
  };
  void mark(const Rows& rows, std::span<const std::uint32_t> starts);
  static Rows rows_of(std::size_t nodes, std::span<const Link> links, bool reversed);

  Rows before_;
  Rows after_;
  std::vector<std::uint32_t> stamp_;
  std::vector<std::uint32_t> open_;
  std::uint32_t current_ = 0;
  std::uint64_t budget_;
};

}  // namespace tessera::description
