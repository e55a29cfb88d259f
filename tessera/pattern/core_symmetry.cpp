#include "tessera/pattern/core_symmetry.h"

#include <algorithm>
#include <numeric>

using namespace tessera::pattern;

namespace {

constexpr std::size_t core_limit = 512;
/// Vertices that are coloured anew in all, before the search is given up.
constexpr std::uint64_t work_limit = 8'000'000;

/// A colour for each vertex that says what is around it. A mapping keeps colours, so different ones are a
/// proof; equal ones are none.
using Colours = std::vector<std::uint64_t>;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15U + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9U;
  h ^= h >> 29;
  h *= 0x94d049bb133111ebU;
  return h ^ (h >> 32);
}

/// Two colourings that a mapping must carry into each other.
struct Pair {
  Colours from;
  Colours to;
};

class CoreFinder {
 public:
  CoreFinder(const PatternShape& shape, TreeClasses& trees, std::span<const std::uint32_t> rank)
      : shape_(shape), trees_(trees), orbit_(shape.size()), identity_(shape.size()) {
    std::iota(orbit_.begin(), orbit_.end(), 0U);
    std::iota(identity_.begin(), identity_.end(), 0U);
    for (std::uint32_t i = 0; i < shape.size(); ++i)
      if (!shape.is_private[i] && (i < shape.nodes || shape.uses[i] > 0)) core_.push_back(i);
    std::ranges::sort(core_, {}, [&](std::uint32_t i) { return i < rank.size() ? rank[i] : i; });
  }

  /// From the last vertex to the first: what keeps more vertices in place is known when it is needed, and
  /// the mappings found so far join most of an orbit before anything is searched.
  std::vector<CoreExchange> run() {
    if (core_.size() > core_limit || !has_equal_kinds()) return {};
    classes_ = trees_.number(identity_);
    start_ = refined(Colours(shape_.kinds.begin(), shape_.kinds.end()));
    std::vector<CoreExchange> out;
    for (std::size_t at = core_.size(); at-- > 0;) {
      find_orbit(at);
      for (std::size_t other = at + 1; other < core_.size(); ++other)
        if (find(core_[other]) == find(core_[at])) out.push_back({core_[at], core_[other]});
    }
    return out;
  }

 private:
  [[nodiscard]] bool has_equal_kinds() const {
    std::vector<std::uint32_t> kinds;
    for (std::uint32_t vertex : core_) kinds.push_back(shape_.kinds[vertex]);
    std::ranges::sort(kinds);
    return std::ranges::adjacent_find(kinds) != kinds.end();
  }
  std::uint32_t find(std::uint32_t vertex) {
    while (orbit_[vertex] != vertex) vertex = orbit_[vertex] = orbit_[orbit_[vertex]];
    return vertex;
  }

  void find_orbit(std::size_t at) {
    std::vector<std::uint32_t> refused;  // no mapping leads to them, nor to what is in their orbit
    for (std::size_t other = at + 1; other < core_.size(); ++other) {
      const std::uint32_t to = core_[other];
      const auto is_same_orbit = [&](std::uint32_t vertex) { return find(vertex) == find(to); };
      if (start_[to] != start_[core_[at]] || is_same_orbit(core_[at]) ||
          std::ranges::any_of(refused, is_same_orbit))
        continue;
      Pair pair{start_, start_};
      for (std::size_t i = 0; i < at; ++i) mark(pair, core_[i], core_[i]);
      mark(pair, core_[at], to);
      if (!extend(std::move(pair), 0)) refused.push_back(to);
    }
  }
  /// Gives the two vertices a colour of their own.
  void mark(Pair& pair, std::uint32_t from, std::uint32_t to) const {
    pair.from[from] = mixed(pair.from[from], from + 1);
    pair.to[to] = mixed(pair.to[to], from + 1);
  }

  /// Finds a mapping that carries one colouring into the other and joins the orbits that it joins.
  /// Recursion as deep as the core has vertices, at most core_limit.
  bool extend(Pair pair, std::size_t first_open) {
    pair.from = refined(std::move(pair.from));
    pair.to = refined(std::move(pair.to));
    if (sorted(pair.from) != sorted(pair.to) || work_ > work_limit) return false;
    const Colours all = core_colours(pair.from);
    const auto is_open = [&](std::uint32_t vertex) {
      const auto [first, last] = std::ranges::equal_range(all, pair.from[vertex]);
      return last - first > 1;
    };
    while (first_open < core_.size() && !is_open(core_[first_open])) ++first_open;
    if (first_open == core_.size()) return take_mapping(pair);
    for (std::uint32_t to : core_) {
      if (pair.to[to] != pair.from[core_[first_open]]) continue;
      Pair next = pair;
      mark(next, core_[first_open], to);
      if (extend(std::move(next), first_open + 1)) return true;
    }
    return false;
  }

  /// The mapping that equal colours of the core say; false if it is none of the pattern onto itself.
  bool take_mapping(const Pair& pair) {
    std::vector<std::uint32_t> image = identity_;
    for (std::uint32_t vertex : core_) {
      const auto at = std::ranges::find_if(
          core_, [&](std::uint32_t other) { return pair.to[other] == pair.from[vertex]; });
      if (at == core_.end()) return false;
      image[vertex] = *at;
    }
    const std::vector<std::uint32_t> moved = trees_.number(image);
    for (std::uint32_t vertex : core_)
      if (moved[vertex] != classes_[image[vertex]]) return false;
    for (std::uint32_t vertex : core_) orbit_[find(vertex)] = find(image[vertex]);
    return true;
  }

  [[nodiscard]] static Colours sorted(Colours colours) {
    std::ranges::sort(colours);
    return colours;
  }
  [[nodiscard]] Colours core_colours(const Colours& colours) const {
    Colours out;
    for (std::uint32_t vertex : core_) out.push_back(colours[vertex]);
    return sorted(std::move(out));
  }
  [[nodiscard]] static std::size_t count(const Colours& colours) {
    Colours all = sorted(colours);
    return static_cast<std::size_t>(std::ranges::unique(all).begin() - all.begin());
  }

  /// Colours that know those of their neighbours, and theirs, until nothing more can be told apart.
  Colours refined(Colours colours) {
    for (std::size_t before = 0, now = count(colours); now != before && now < colours.size();) {
      work_ += colours.size();
      Colours next(colours.size());
      for (std::size_t i = 0; i < colours.size(); ++i) next[i] = mixed(colours[i], 1);
      for (std::uint32_t i = 0; i < shape_.nodes; ++i)
        for (std::size_t slot = 0; slot < shape_.slots[i].size(); ++slot) {
          const auto [vertex, result] = shape_.slots[i][slot];
          if (vertex == none) continue;
          // Sums do not depend on the order in which neighbours come.
          const std::uint64_t place = mixed(shape_.is_commutative[i] ? 0 : slot + 1, result);
          next[i] += mixed(mixed(colours[vertex], place), 2);
          next[vertex] += mixed(mixed(colours[i], place), 3);
        }
      colours = std::move(next);
      before = now;
      now = count(colours);
    }
    return colours;
  }

  const PatternShape& shape_;
  TreeClasses& trees_;
  std::vector<std::uint32_t> core_;   ///< in order
  std::vector<std::uint32_t> orbit_;  ///< by vertex: joined under the mappings found so far
  std::vector<std::uint32_t> identity_;
  std::vector<std::uint32_t> classes_;
  Colours start_;
  std::uint64_t work_ = 0;
};

}  // namespace

std::vector<CoreExchange> tessera::pattern::find_core_exchanges(const PatternShape& shape, TreeClasses& trees,
                                                                std::span<const std::uint32_t> rank) {
  return CoreFinder(shape, trees, rank).run();
}
