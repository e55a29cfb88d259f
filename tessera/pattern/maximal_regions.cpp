#include "tessera/pattern/maximal_regions.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

using namespace tessera::pattern;

namespace {

/// Bits of memory for the relation, and steps for the sets; beyond, the answer is not complete.
constexpr std::uint64_t relation_limit = 1U << 26;
constexpr std::uint64_t step_limit = 20'000'000;
/// Ops of a group for which a region each is grown where not all can be listed.
constexpr std::size_t seed_limit = 256;

/// Bits in rows of one length.
class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_, 0) {}
  [[nodiscard]] std::span<std::uint64_t> row(std::size_t r) { return {data_.data() + r * words_, words_}; }
  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t r) const {
    return {data_.data() + r * words_, words_};
  }
  [[nodiscard]] std::size_t words() const { return words_; }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> data_;
};

using Bits = std::vector<std::uint64_t>;

void set_bit(std::span<std::uint64_t> bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
void unite(std::span<std::uint64_t> into, std::span<const std::uint64_t> from) {
  for (std::size_t w = 0; w < into.size(); ++w) into[w] |= from[w];
}
template <class Visit>
void for_each_bit(std::span<const std::uint64_t> bits, Visit visit) {
  for (std::size_t w = 0; w < bits.size(); ++w)
    for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
      visit(64 * w + static_cast<std::size_t>(std::countr_zero(rest)));
}

class MaximalFinder {
 public:
  MaximalFinder(const Graph& graph, const FusionGroups& groups, std::uint32_t group, Convexity& convexity)
      : graph_(graph), groups_(groups), group_(group), nodes_(groups.groups[group]), convexity_(convexity) {}

  MaximalRegions run() {
    std::vector<NodeId> all = nodes_;
    std::ranges::sort(all);
    if (convexity_.is_convex(all)) {
      out_.regions.push_back(std::move(all));
      return std::move(out_);
    }
    if (!find_all()) grow_from_seeds();
    std::ranges::sort(out_.regions);
    out_.regions.erase(std::unique(out_.regions.begin(), out_.regions.end()), out_.regions.end());
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_in_group(NodeId node) const { return groups_.group_of[node] == group_; }

  bool find_all() {
    const std::uint32_t first = graph_.position(nodes_.front());
    const std::uint64_t span = graph_.position(nodes_.back()) - first + 1;
    if (2 * span * nodes_.size() > relation_limit) return false;
    const BitRows excludes = find_exclusions(first, span);
    find_classes(excludes);
    if (!find_sets()) return false;
    for (const Bits& set : sets_) take_parts(set);
    return true;
  }

  /// Row i: the ops that exclude op i and come before it. Along the order, each node hands on which ops of
  /// the group lead to it, and which of them on a way that left the group.
  BitRows find_exclusions(std::uint32_t first, std::size_t span) const {
    BitRows leads(span, nodes_.size());
    BitRows leads_outside(span, nodes_.size());
    BitRows out(nodes_.size(), nodes_.size());
    std::size_t number = 0;
    for (std::size_t at = 0; at < span; ++at) {
      const NodeId node = graph_.order()[first + at];
      for (NodeId before : graph_.predecessors(node)) {
        if (graph_.position(before) < first) continue;
        const std::size_t from = graph_.position(before) - first;
        unite(leads.row(at), leads.row(from));
        unite(leads_outside.row(at), is_in_group(before) ? leads_outside.row(from) : leads.row(from));
      }
      if (!is_in_group(node)) continue;
      unite(out.row(number), leads_outside.row(at));
      set_bit(leads.row(at), number++);
    }
    return out;
  }

  /// Ops that exclude the same ops and are excluded by the same are one class.
  void find_classes(const BitRows& before) {
    BitRows excluded(nodes_.size(), nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for_each_bit(before.row(i), [&](std::size_t other) {
        set_bit(excluded.row(i), other);
        set_bit(excluded.row(other), i);
      });
    std::map<Bits, std::size_t> known;  // a class does not exclude itself, so the rows tell classes apart
    std::vector<std::size_t> class_of;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto row = excluded.row(i);
      const auto at = known.try_emplace(Bits(row.begin(), row.end()), members_.size()).first;
      if (at->second == members_.size()) members_.emplace_back();
      members_[at->second].push_back(nodes_[i]);
      class_of.push_back(at->second);
    }
    words_ = (members_.size() + 63) / 64;
    fits_.assign(members_.size(), Bits(words_, ~std::uint64_t{0}));
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for_each_bit(excluded.row(i), [&](std::size_t other) {
        fits_[class_of[i]][class_of[other] / 64] &= ~(std::uint64_t{1} << (class_of[other] % 64));
      });
  }

  /// All maximal sets of classes that fit each other. False if that takes too many steps.
  bool find_sets() {
    sets_ = {Bits(words_, 0)};
    std::uint64_t steps = 0;
    for (std::size_t c = 0; c < members_.size(); ++c) {
      std::vector<Bits> added;
      for (Bits& set : sets_) {
        steps += words_;
        Bits common = set;
        for (std::size_t w = 0; w < words_; ++w) common[w] &= fits_[c][w];
        const bool fits_all = common == set;
        set_bit(common, c);
        if (fits_all)
          set = std::move(common);
        else if (is_maximal(common, c, steps))
          added.push_back(std::move(common));
        if (steps > step_limit) return false;
      }
      std::ranges::sort(added);
      added.erase(std::unique(added.begin(), added.end()), added.end());
      sets_.insert(sets_.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
    }
    return true;
  }
  /// Whether no class up to c that is not in the set fits all that are.
  bool is_maximal(const Bits& set, std::size_t c, std::uint64_t& steps) const {
    Bits fitting(words_, ~std::uint64_t{0});
    for_each_bit(set, [&](std::size_t member) {
      steps += words_;
      for (std::size_t w = 0; w < words_; ++w) fitting[w] &= fits_[member][w];
    });
    for (std::size_t w = 0; w <= c / 64; ++w) {
      std::uint64_t more = fitting[w] & ~set[w];
      if (w == c / 64 && c % 64 != 63) more &= (std::uint64_t{1} << (c % 64 + 1)) - 1;
      if (more != 0) return false;
    }
    return true;
  }

  /// The connected parts of a set to which nothing can be added.
  void take_parts(const Bits& set) {
    std::map<NodeId, bool> is_taken;
    for_each_bit(set, [&](std::size_t c) {
      for (NodeId node : members_[c]) is_taken[node] = false;
    });
    for (auto& [node, taken] : is_taken) {
      if (taken) continue;
      taken = true;
      std::vector<NodeId> part{node};
      for (std::size_t i = 0; i < part.size(); ++i)
        for (const auto around : {graph_.predecessors(part[i]), graph_.successors(part[i])})
          for (NodeId other : around) {
            const auto at = is_taken.find(other);
            if (at == is_taken.end() || at->second) continue;
            at->second = true;
            part.push_back(other);
          }
      std::ranges::sort(part);
      if (!find_addition(part)) out_.regions.push_back(std::move(part));
    }
  }

  /// An op of the group that can be added to the region, the one that comes first in the order.
  [[nodiscard]] std::optional<NodeId> find_addition(const std::vector<NodeId>& region) {
    std::vector<NodeId> around;
    for (NodeId node : region)
      for (const auto list : {graph_.predecessors(node), graph_.successors(node)})
        for (NodeId other : list)
          if (is_in_group(other) && !std::ranges::binary_search(region, other)) around.push_back(other);
    std::ranges::sort(around, {}, [&](NodeId node) { return graph_.position(node); });
    around.erase(std::unique(around.begin(), around.end()), around.end());
    for (NodeId node : around) {
      std::vector<NodeId> larger = region;
      larger.insert(std::ranges::upper_bound(larger, node), node);
      if (convexity_.is_convex(larger)) return node;
    }
    return std::nullopt;
  }

  void grow_from_seeds() {
    out_.is_complete = false;
    out_.regions.clear();
    const std::size_t stride = std::max<std::size_t>(1, nodes_.size() / seed_limit);
    for (std::size_t i = 0; i < nodes_.size(); i += stride) {
      std::vector<NodeId> region{nodes_[i]};
      while (region.size() < seed_limit) {
        const auto node = find_addition(region);
        if (!node) break;
        region.insert(std::ranges::upper_bound(region, *node), *node);
      }
      out_.regions.push_back(std::move(region));
    }
  }

  const Graph& graph_;
  const FusionGroups& groups_;
  std::uint32_t group_;
  const std::vector<NodeId>& nodes_;
  Convexity& convexity_;
  std::vector<std::vector<NodeId>> members_;  ///< by class
  std::vector<Bits> fits_;                    ///< by class: the classes it does not exclude, itself too
  std::size_t words_ = 0;
  std::vector<Bits> sets_;  ///< of classes
  MaximalRegions out_;
};

}  // namespace

MaximalRegions tessera::pattern::find_maximal_regions(const Graph& graph, const FusionGroups& groups,
                                                      std::uint32_t group, Convexity& convexity) {
  return MaximalFinder(graph, groups, group, convexity).run();
}
