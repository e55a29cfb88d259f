#include "tessera/ir/size_matching.h"

#include <algorithm>
#include <numeric>

#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr std::size_t most_work = 50'000'000;  // parts of sizes looked at: some seconds

/// The numbers of the symbols, by colour.
std::vector<std::size_t> by_colour(const SymbolColours& side) {
  std::vector<std::size_t> order(side.symbols().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto colours = side.colours();
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return colours[a] < colours[b]; });
  return order;
}

class Search {
 public:
  Search(std::span<const OpenSize> left, std::span<const OpenSize> right) : count_(left.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      left_.add(left[i], i);
      right_.add(right[i], i);
    }
  }

  /// Depth first: each choice gives a symbol on both sides a colour of its own.
  bool run() {
    if (left_.symbols().size() != right_.symbols().size()) return false;
    for (;;) {
      if (work_ > most_work) return false;
      const Outcome outcome = look();
      if (outcome == Outcome::matched) return true;
      if (outcome == Outcome::tied) begin_choice();
      if (!next_choice()) return false;
    }
  }

 private:
  enum class Outcome : std::uint8_t { matched, tied, impossible };
  struct Choice {
    std::vector<Hash128> left, right;   // the colours before it
    std::size_t symbol = 0;             // on the left
    std::vector<std::size_t> partners;  // those not tried yet
  };

  Outcome look() {
    left_.refine();
    right_.refine();
    left_order_ = by_colour(left_);
    right_order_ = by_colour(right_);
    work_ += 4 * (left_.weight() + right_.weight());
    bool is_tied = false;
    for (std::size_t i = 0; i < left_order_.size(); ++i) {
      if (left_colour(i) != right_.colours()[right_order_[i]]) return Outcome::impossible;
      is_tied = is_tied || (i > 0 && left_colour(i) == left_colour(i - 1));
    }
    if (is_match()) return Outcome::matched;
    return is_tied ? Outcome::tied : Outcome::impossible;
  }

  [[nodiscard]] const Hash128& left_colour(std::size_t i) const { return left_.colours()[left_order_[i]]; }

  /// Whether pairing the symbols in the order of their colours makes the sizes equal.
  [[nodiscard]] bool is_match() const {
    std::vector<std::uint64_t> left(left_order_.size()), right(right_order_.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[left_order_[i]] = right[right_order_[i]] = i;
      const Var& a = *left_.symbols()[left_order_[i]];
      const Var& b = *right_.symbols()[right_order_[i]];
      if (!structural_equal(*a.type, *b.type, CompareMode::mapping)) return false;
    }
    for (std::size_t i = 0; i < count_; ++i)
      if (left_.words(i, left) != right_.words(i, right)) return false;
    return true;
  }

  /// A symbol of the smallest set of tied ones can be matched with any of that set.
  void begin_choice() {
    std::size_t first = 0, size = left_order_.size() + 1;
    for (std::size_t i = 0; i < left_order_.size();) {
      std::size_t end = i + 1;
      while (end < left_order_.size() && left_colour(end) == left_colour(i)) ++end;
      if (end - i > 1 && end - i < size) {
        first = i;
        size = end - i;
      }
      i = end;
    }
    const auto begin = right_order_.begin() + static_cast<std::ptrdiff_t>(first);
    choices_.push_back({{left_.colours().begin(), left_.colours().end()},
                        {right_.colours().begin(), right_.colours().end()},
                        left_order_[first],
                        {begin, begin + static_cast<std::ptrdiff_t>(size)}});
  }

  bool next_choice() {
    while (!choices_.empty() && choices_.back().partners.empty()) choices_.pop_back();
    if (choices_.empty()) return false;
    Choice& choice = choices_.back();
    left_.set_colours(choice.left);
    right_.set_colours(choice.right);
    left_.single_out(choice.symbol, choices_.size());
    right_.single_out(choice.partners.back(), choices_.size());
    choice.partners.pop_back();
    return true;
  }

  std::size_t count_;
  SymbolColours left_, right_;
  std::vector<std::size_t> left_order_, right_order_;
  std::vector<Choice> choices_;
  std::size_t work_ = 0;
};

}  // namespace

bool tessera::ir::can_match(std::span<const OpenSize> left, std::span<const OpenSize> right) {
  return Search(left, right).run();
}
