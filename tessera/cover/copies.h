// Parts of a problem that nothing joins, and that are alike: one of each kind is solved, as a problem of its
// own, and the others take its answer. Pieces (pieces.h) find more that repeats, within one part too; this
// saves the work of even looking at the copies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/cover/cover.h"

namespace tessera::cover {

/// Things listed by group, in their order within each.
struct Grouped {
  std::vector<std::uint32_t> begin;  ///< by group, and the end
  std::vector<std::uint32_t> items;

  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t group) const {
    return {items.data() + begin[group], begin[group + 1] - begin[group]};
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(begin.size() - 1); }
};

/// Two parts are alike if their nodes, candidates and edges, each numbered within the part, agree in all that
/// a Problem says of them.
class Copies {
 public:
  /// Nothing if no part is there twice. `problem` must outlive the result. REQUIRES validate(problem) is ok.
  [[nodiscard]] static std::optional<Copies> find(const Problem& problem);

  /// One part of each kind, one behind the other.
  [[nodiscard]] Problem one_of_each() const;
  /// The answer for the whole problem, from that for one_of_each().
  [[nodiscard]] Solution for_all(const Solution& each) const;

 private:
  struct Spread;
  struct Place;
  explicit Copies(const Problem& problem) : problem_(problem) {}

  [[nodiscard]] bool split();
  void find_kinds();
  [[nodiscard]] bool is_alike(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] bool is_alike(const Candidate& a, const Candidate& b) const;
  void encode(std::uint32_t part, std::vector<std::uint64_t>& words) const;
  void take_steps(const Solution& each, Solution& out) const;
  void set_order(std::span<const Place> place_of, Solution& out) const;
  [[nodiscard]] std::vector<Step> scheduled(std::span<const Place> place_of,
                                            std::span<const Step> steps) const;
  void take_subproblems(const Solution& each, Solution& out) const;

  const Problem& problem_;
  Grouped nodes_, candidates_, edges_;   ///< by part
  std::vector<std::uint32_t> local_;     ///< by node: its number within its part
  std::vector<std::uint32_t> kind_of_;   ///< by part
  std::vector<std::uint32_t> first_of_;  ///< by kind: the part that is solved
};

}  // namespace tessera::cover
