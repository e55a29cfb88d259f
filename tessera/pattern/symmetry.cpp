#include "tessera/pattern/symmetry.h"

#include <algorithm>

#include "tessera/base/hash.h"
#include "tessera/pattern/variant.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Kind = PatternInput::Kind;

constexpr std::size_t vertex_limit = 48;
/// Steps of one search for a mapping of the pattern onto itself.
constexpr std::uint32_t step_limit = 20'000;

/// Nodes and externals as vertices 0 … n-1; a node has the vertices of its inputs. Vertices of different
/// kinds are never exchanged. Colours are hashes of what is around a vertex: they only save the search from
/// trying in vain.
class SymmetryFinder {
 public:
  SymmetryFinder(const Variant& variant, const std::vector<PatternExternal>& externals,
                 const std::vector<bool>& is_commutative)
      : variant_(variant),
        externals_(externals),
        is_commutative_(is_commutative),
        nodes_(variant.nodes.size()),
        size_(nodes_ + externals.size()) {}

  std::vector<OrderRule> run() {
    if (size_ > vertex_limit) return {};
    find_kinds();
    for (std::size_t before = 0; before != colour_count() && colour_count() < size_; refine())
      before = colour_count();
    // Fix one vertex after another; what the mappings that keep the fixed ones can still do to the next is
    // its orbit.
    std::vector<OrderRule> rules;
    for (std::uint32_t vertex = 0; vertex < size_; ++vertex) {
      for (std::uint32_t other = vertex + 1; other < size_; ++other)
        if (has_mapping(vertex, other)) rules.push_back(rule(vertex, other));
    }
    return rules;
  }

 private:
  [[nodiscard]] OrderRule rule(std::uint32_t smaller, std::uint32_t larger) const {
    const auto n = static_cast<std::uint32_t>(nodes_);
    if (smaller < n) return {OrderRule::Of::nodes, smaller, larger};
    return {OrderRule::Of::externals, smaller - n, larger - n};
  }

  /// A kind is the number of the first vertex that is alike.
  void find_kinds() {
    for (std::uint32_t i = 0; i < size_; ++i) {
      std::uint32_t first = i < nodes_ ? 0 : static_cast<std::uint32_t>(nodes_);
      while (first < i && !is_alike(first, i)) ++first;
      kinds_.push_back(first);
      colours_.push_back(Hasher(first).finish());
    }
  }
  [[nodiscard]] bool is_alike(std::uint32_t a, std::uint32_t b) const {
    if (a >= nodes_) {
      const PatternExternal& x = externals_[a - nodes_];
      const PatternExternal& y = externals_[b - nodes_];
      return x.is_constant == y.is_constant && x.value == y.value && x.dtypes == y.dtypes;
    }
    const PatternNode& x = variant_.nodes[a];
    const PatternNode& y = variant_.nodes[b];
    return x.inputs.size() == y.inputs.size() && is_same_kind(x, y) && has_same_outputs(a, b);
  }
  [[nodiscard]] bool has_same_outputs(std::uint32_t a, std::uint32_t b) const {
    const auto count = [&](std::uint32_t node, const PatternOutput& like) {
      return std::ranges::count(variant_.outputs, PatternOutput{node, like.result, like.is_whole_node});
    };
    return std::ranges::all_of(variant_.outputs, [&](const PatternOutput& one) {
      return (one.node != a && one.node != b) || count(a, one) == count(b, one);
    });
  }

  /// The vertex in a slot, or none.
  [[nodiscard]] std::uint32_t vertex_of(const PatternInput& input) const {
    if (input.kind == Kind::any) return none;
    return input.kind == Kind::node ? input.index : static_cast<std::uint32_t>(nodes_) + input.index;
  }

  [[nodiscard]] std::size_t colour_count() const {
    std::vector<Hash128> sorted = colours_;
    std::ranges::sort(sorted);
    return static_cast<std::size_t>(std::ranges::unique(sorted).begin() - sorted.begin());
  }
  /// Colours that also know the colours of the neighbours.
  void refine() {
    std::vector<std::vector<Hash128>> around(size_);
    for (std::uint32_t i = 0; i < nodes_; ++i)
      for (std::size_t slot = 0; slot < variant_.nodes[i].inputs.size(); ++slot) {
        const PatternInput& input = variant_.nodes[i].inputs[slot];
        const std::uint32_t other = vertex_of(input);
        const std::uint64_t place = is_commutative_[i] ? 0 : slot + 1;
        if (other == none) continue;
        around[i].push_back(Hasher(4).add(place).add(input.result).add(colours_[other]).finish());
        around[other].push_back(Hasher(5).add(place).add(input.result).add(colours_[i]).finish());
      }
    for (std::uint32_t i = 0; i < size_; ++i) {
      std::ranges::sort(around[i]);
      Hasher hasher(6);
      hasher.add(colours_[i]);
      for (const Hash128& hash : around[i]) hasher.add(hash);
      around[i] = {hasher.finish()};
    }
    for (std::uint32_t i = 0; i < size_; ++i) colours_[i] = around[i][0];
  }

  /// Whether some mapping of the pattern onto itself keeps all vertices below `from` and sends `from` to
  /// `to`.
  bool has_mapping(std::uint32_t from, std::uint32_t to) {
    if (kinds_[from] != kinds_[to] || colours_[from] != colours_[to]) return false;
    image_.assign(size_, none);
    is_taken_.assign(size_, false);
    steps_ = 0;
    for (std::uint32_t i = 0; i < from; ++i) assign(i, i);
    if (is_taken_[to]) return false;
    assign(from, to);
    return extend(from + 1);
  }
  void assign(std::uint32_t vertex, std::uint32_t image) {
    image_[vertex] = image;
    is_taken_[image] = true;
  }
  /// Recursion as deep as the pattern has vertices, at most vertex_limit.
  bool extend(std::uint32_t vertex) {
    if (vertex == size_) return is_mapping();
    for (std::uint32_t image = 0; image < size_; ++image) {
      if (is_taken_[image] || kinds_[image] != kinds_[vertex] || colours_[image] != colours_[vertex])
        continue;
      if (++steps_ > step_limit) return false;
      assign(vertex, image);
      if (may_hold(vertex) && extend(vertex + 1)) return true;
      is_taken_[image] = false;
      image_[vertex] = none;
    }
    return false;
  }
  /// Whether the nodes around `vertex` whose inputs all have images agree.
  bool may_hold(std::uint32_t vertex) const {
    for (std::uint32_t i = 0; i < nodes_; ++i) {
      if (image_[i] == none) continue;
      const auto& inputs = variant_.nodes[i].inputs;
      const bool touches = i == vertex || std::ranges::any_of(inputs, [&](const PatternInput& input) {
                             return vertex_of(input) == vertex;
                           });
      if (touches && !agrees(i)) return false;
    }
    return true;
  }
  bool is_mapping() const {
    for (std::uint32_t i = 0; i < nodes_; ++i)
      if (!agrees(i)) return false;
    return true;
  }
  /// Whether the inputs of node i, as far as they have images, are among the inputs of its image.
  bool agrees(std::uint32_t i) const {
    const auto& from = variant_.nodes[i].inputs;
    const auto& to = variant_.nodes[image_[i]].inputs;
    if (from.size() != to.size()) return false;
    const auto fits = [&](const PatternInput& a, const PatternInput& b) {
      if (a.kind != b.kind || a.result != b.result) return false;
      const std::uint32_t vertex = vertex_of(a);
      return vertex == none || image_[vertex] == none || image_[vertex] == vertex_of(b);
    };
    if (!is_commutative_[i]) return std::ranges::equal(from, to, fits);
    std::vector<bool> is_used(to.size(), false);
    const auto take = [&](const PatternInput& a) {
      for (std::size_t slot = 0; slot < to.size(); ++slot)
        if (!is_used[slot] && fits(a, to[slot])) {
          is_used[slot] = true;
          return true;
        }
      return false;
    };
    // Inputs with an image first: they have one place, the others have several.
    for (const bool with_image : {true, false})
      for (const PatternInput& a : from) {
        const std::uint32_t vertex = vertex_of(a);
        const bool has_image = vertex == none || image_[vertex] != none;
        if (has_image == with_image && !take(a)) return false;
      }
    return true;
  }

  const Variant& variant_;
  const std::vector<PatternExternal>& externals_;
  const std::vector<bool>& is_commutative_;
  std::size_t nodes_;
  std::size_t size_;
  std::vector<std::uint32_t> kinds_;
  std::vector<Hash128> colours_;
  std::vector<std::uint32_t> image_;
  std::vector<bool> is_taken_;
  std::uint32_t steps_ = 0;
};

}  // namespace

std::vector<OrderRule> tessera::pattern::find_order_rules(const Variant& variant,
                                                          const std::vector<PatternExternal>& externals,
                                                          const std::vector<bool>& is_commutative) {
  return SymmetryFinder(variant, externals, is_commutative).run();
}
