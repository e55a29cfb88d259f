#include "tessera/pattern/maximal_regions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// Bits of memory for the relation, and steps for the sets; beyond, the answer is not complete.
constexpr std::uint64_t relation_limit = 1U << 28;
constexpr std::uint64_t region_step_limit = 20'000'000;
/// Where not all can be listed: from so many ops of the group a region is grown, to at most so many ops.
constexpr std::size_t seed_limit = 128;
constexpr std::size_t grown_limit = 64;
/// What a look of the question takes whether a region stays convex.
constexpr std::uint64_t growth_look_work = 6;

/// Exchanges rows and columns of 64 times 64 bits: halves first, then quarters, …
void transpose(std::array<std::uint64_t, 64>& block) {
  std::uint64_t mask = 0x00000000ffffffffU;
  for (std::size_t step = 32; step != 0; step /= 2, mask ^= mask << step)
    for (std::size_t k = 0; k < 64; k = (k + step + 1) & ~step) {
      const std::uint64_t swapped = ((block[k] >> step) ^ block[k + step]) & mask;
      block[k] ^= swapped << step;
      block[k + step] ^= swapped;
    }
}

/// Bits in rows of one length.
class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_, 0) {}
  [[nodiscard]] std::span<std::uint64_t> row(std::size_t r) { return {data_.data() + r * words_, words_}; }
  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t r) const {
    return {data_.data() + r * words_, words_};
  }
  /// The same bits with rows and columns exchanged. REQUIRES `bits` rows of `bits` bits.
  [[nodiscard]] BitRows transposed(std::size_t bits) const {
    BitRows out(bits, bits);
    for (std::size_t r = 0; r < bits; r += 64)
      for (std::size_t w = 0; w < words_; ++w) {
        std::array<std::uint64_t, 64> block{};
        for (std::size_t i = 0; i < 64 && r + i < bits; ++i) block[i] = row(r + i)[w];
        transpose(block);
        for (std::size_t i = 0; i < 64 && 64 * w + i < bits; ++i) out.row(64 * w + i)[r / 64] = block[i];
      }
    return out;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> data_;
};

using Bits = std::vector<std::uint64_t>;

void set_bit(std::span<std::uint64_t> bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
bool has_bit(std::span<const std::uint64_t> bits, std::size_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}
std::uint64_t hash_words(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 31;
  }
  return hash;
}
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
  MaximalFinder(const Graph& graph, const FusionGroups& groups, std::uint32_t group, Convexity& convexity,
                cover::Effort& effort)
      : graph_(graph),
        groups_(groups),
        group_(group),
        nodes_(groups.groups[group]),
        convexity_(convexity),
        effort_(effort) {}

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
    effort_.spend(2 * span * (nodes_.size() + 63) / 64);  // the words of the relation
    find_classes(find_exclusions(first, span));
    if (!find_sets()) return false;
    for (const Bits& set : done_) take_parts(set);
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
    BitRows excluded = before.transposed(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) unite(excluded.row(i), before.row(i));
    // No op excludes itself, so equal rows mean that neither excludes the other.
    std::unordered_multimap<std::uint64_t, std::size_t> known;
    std::vector<std::size_t> heads;  // the first op of each class
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::uint64_t hash = hash_words(excluded.row(i));
      const auto [first, last] = known.equal_range(hash);
      const auto same = std::find_if(first, last, [&](const auto& entry) {
        return std::ranges::equal(excluded.row(heads[entry.second]), excluded.row(i));
      });
      class_of_.push_back(same == last ? heads.size() : same->second);
      if (same != last) continue;
      known.emplace(hash, heads.size());
      heads.push_back(i);
    }
    members_.resize(heads.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) members_[class_of_[i]].push_back(i);
    words_ = (heads.size() + 63) / 64;
    last_fit_.assign(heads.size(), 0);
    // A word at a time: most ops exclude few others, or few do not.
    Bits is_head((nodes_.size() + 63) / 64, 0);
    for (std::size_t head : heads) set_bit(is_head, head);
    for (std::size_t c = 0; c < heads.size(); ++c) {
      Bits fitting(is_head.size(), 0);
      for (std::size_t w = 0; w < fitting.size(); ++w) fitting[w] = is_head[w] & ~excluded.row(heads[c])[w];
      fits_.emplace_back(words_, 0);
      for_each_bit(fitting, [&](std::size_t op) {
        set_bit(fits_[c], class_of_[op]);
        last_fit_[c] = class_of_[op];  // classes are numbered in the order of their heads
      });
    }
  }

  /// All maximal sets of classes that fit each other. False if that takes too many steps.
  bool find_sets() {
    sets_ = {Bits(words_, 0)};
    set_bit(sets_[0], 0);
    std::uint64_t steps = 0;
    std::uint64_t counted = 0;  // of these
    for (std::size_t c = 1; c < members_.size(); ++c) {
      effort_.spend(steps - counted);
      counted = steps;
      if (effort_.is_over()) return false;
      std::vector<Bits> added;
      put_away_done(c);
      Bits alone(words_, 0);
      set_bit(alone, c);
      if (is_maximal(alone, c, steps)) added.push_back(std::move(alone));
      for (Bits& set : sets_) {
        Bits common = set;
        for (std::size_t w = 0; w < words_; ++w) common[w] &= fits_[c][w];
        const bool fits_all = common == set;
        set_bit(common, c);
        if (fits_all)
          set = std::move(common);
        else if (is_maximal(common, c, steps))
          added.push_back(std::move(common));
        steps += words_;
        if (steps > region_step_limit) return false;
      }
      std::ranges::sort(added);
      added.erase(std::unique(added.begin(), added.end()), added.end());
      sets_.insert(sets_.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
    }
    return true;
  }
  /// Sets that nothing from class c on fits stay as they are.
  void put_away_done(std::size_t c) {
    std::erase_if(sets_, [&](Bits& set) {
      bool is_done = true;
      for_each_bit(set, [&](std::size_t member) { is_done = is_done && last_fit_[member] < c; });
      if (is_done) done_.push_back(std::move(set));
      return is_done;
    });
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

  [[nodiscard]] std::size_t number_of(NodeId node) const {
    const auto position = [&](NodeId other) { return graph_.position(other); };
    const auto at = std::ranges::lower_bound(nodes_, graph_.position(node), {}, position);
    return static_cast<std::size_t>(at - nodes_.begin());
  }

  /// The connected parts of a set to which nothing can be added.
  void take_parts(const Bits& set) {
    std::vector<std::size_t> members;
    for_each_bit(
        set, [&](std::size_t c) { members.insert(members.end(), members_[c].begin(), members_[c].end()); });
    is_open_.resize(nodes_.size());
    for (std::size_t i : members) is_open_[i] = true;
    for (std::size_t i : members)
      if (is_open_[i]) take_part(i);
  }
  /// The part that op i is in. An op next to it that no op of it excludes could be added, with what is
  /// between.
  void take_part(std::size_t i) {
    std::vector<NodeId> part{nodes_[i]};
    std::vector<std::size_t> around;
    Bits fitting = fits_[class_of_[i]];
    is_open_[i] = false;
    for (std::size_t k = 0; k < part.size(); ++k)
      for (const auto list : {graph_.predecessors(part[k]), graph_.successors(part[k])})
        for (NodeId other : list) {
          if (!is_in_group(other)) continue;
          const std::size_t number = number_of(other);
          around.push_back(number);
          if (!is_open_[number]) continue;
          is_open_[number] = false;
          part.push_back(other);
          for (std::size_t w = 0; w < words_; ++w) fitting[w] &= fits_[class_of_[number]][w];
        }
    std::ranges::sort(part);
    const auto can_be_added = [&](std::size_t number) {
      return has_bit(fitting, class_of_[number]) && !std::ranges::binary_search(part, nodes_[number]);
    };
    if (std::ranges::none_of(around, can_be_added)) out_.regions.push_back(std::move(part));
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
    for (std::size_t i = 0; i < nodes_.size() && !effort_.is_over(); i += stride) {
      const std::uint64_t looks = convexity_.looks();
      std::vector<NodeId> region{nodes_[i]};
      while (region.size() < grown_limit) {
        const auto node = find_addition(region);
        if (!node) break;
        region.insert(std::ranges::upper_bound(region, *node), *node);
      }
      out_.regions.push_back(std::move(region));
      effort_.spend(growth_look_work * (convexity_.looks() - looks));
    }
  }

  const Graph& graph_;
  const FusionGroups& groups_;
  std::uint32_t group_;
  const std::vector<NodeId>& nodes_;
  Convexity& convexity_;
  cover::Effort& effort_;
  std::vector<std::size_t> class_of_;              ///< by op, as numbered in nodes_
  std::vector<std::vector<std::size_t>> members_;  ///< by class
  std::vector<Bits> fits_;                         ///< by class: the classes it does not exclude, itself too
  std::vector<std::size_t> last_fit_;              ///< by class: the last of those
  std::size_t words_ = 0;
  std::vector<Bits> sets_;  ///< of classes that may still grow
  std::vector<Bits> done_;
  std::vector<bool> is_open_;  ///< by op: in the set whose parts are taken, and in none of them yet
  MaximalRegions out_;
};

}  // namespace

MaximalRegions tessera::pattern::find_maximal_regions(const Graph& graph, const FusionGroups& groups,
                                                      std::uint32_t group, Convexity& convexity,
                                                      cover::Effort& effort) {
  return MaximalFinder(graph, groups, group, convexity, effort).run();
}
