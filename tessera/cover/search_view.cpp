#include "tessera/cover/search_view.h"

#include <algorithm>
#include <bit>

using namespace tessera::cover;

namespace {

bool meet(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((a[i] & b[i]) != 0) return true;
  return false;
}

bool meet(std::span<const BitPart> parts, std::span<const std::uint64_t> words) {
  for (const BitPart& part : parts)
    if ((part.bits & words[part.word]) != 0) return true;
  return false;
}

}  // namespace

std::uint32_t StackTable::push(std::uint32_t stack, std::uint32_t tile) {
  const auto [at, is_new] = numbers_.try_emplace(std::uint64_t{stack} << 32 | tile, nodes_.size());
  if (is_new) nodes_.push_back({stack, tile});
  return at->second;
}

SearchView::SearchView(const SearchModel& model) : model_(model) {
  for (const SearchTile& tile : model.tiles) {
    const auto parts = model.parts_of(tile);
    window_ = std::max(window_, parts.back().word - parts.front().word + 1);
  }
  if (model.has_hinges) window_ = model.words;
  placed_.resize(window_);
  waiting_.resize(window_);
  decided_.resize(window_);
}

void SearchView::load(std::span<const std::uint64_t> packed, const StackTable& stacks) {
  base_ = static_cast<std::uint32_t>(packed[0] >> 32);
  stack_ = static_cast<std::uint32_t>(packed[0]);
  std::ranges::copy(packed.subspan(1), placed_.begin());
  decided_ = placed_;
  hinges_.clear();
  if (stack_ == 0) return;
  std::ranges::fill(waiting_, 0);
  for (std::uint32_t stack = stack_; stack != 0; stack = stacks.below(stack)) {
    hinges_.push_back(stacks.top(stack));
    place(model_.tiles[stacks.top(stack)], waiting_);
  }
  for (std::uint32_t w = 0; w < window_; ++w) decided_[w] |= waiting_[w];
}

void SearchView::pack_child(std::uint32_t tile, StackTable& stacks, std::span<std::uint64_t> packed) const {
  const auto window = packed.subspan(1);
  std::ranges::copy(placed_, window.begin());
  std::uint32_t stack = stack_;
  std::uint64_t base = base_;
  if (model_.tiles[tile].is_hinge)
    stack = stacks.push(stack, tile);
  else
    place(model_.tiles[tile], window);
  for (; stack != 0 && is_ready(model_.tiles[stacks.top(stack)], window); stack = stacks.below(stack))
    place(model_.tiles[stacks.top(stack)], window);
  if (!model_.has_hinges) {
    const auto open = std::ranges::find_if(window, [](std::uint64_t word) { return ~word != 0; });
    base += static_cast<std::uint64_t>(open - window.begin());
    std::fill(std::copy(open, window.end(), window.begin()), window.end(), 0);
  }
  packed[0] = base << 32 | stack;
}

std::uint32_t SearchView::next_position() const {
  const bool waits = stack_ != 0;
  const auto before = waits ? model_.before(model_.tiles[hinges_[0]]) : std::span<const std::uint64_t>();
  for (std::uint32_t w = 0;; ++w) {
    const std::uint64_t open = (waits ? before[w] : ~std::uint64_t{0}) & ~decided_[w];
    if (open != 0) return 64 * (base_ + w) + static_cast<std::uint32_t>(std::countr_zero(open));
  }
}

bool SearchView::is_allowed(const SearchTile& tile) const {
  return !tile.is_hinge || stack_ == 0 || !meet(model_.before(tile), waiting_);
}

/// The stack waits from its bottom to its top: each hinge for the one above. A tile that waits for one of
/// them must not be waited for by that one or one above it.
bool SearchView::may_follow(const SearchTile& tile) const {
  if (is_allowed(tile)) return true;
  bool is_waited_for = false;
  for (std::uint32_t h : hinges_) {  // from the top
    const SearchTile& hinge = model_.tiles[h];
    is_waited_for = is_waited_for || meet(model_.parts_of(tile), model_.before(hinge));
    if (is_waited_for && meet(model_.parts_of(hinge), model_.before(tile))) return false;
  }
  return true;
}

void SearchView::place(const SearchTile& tile, std::span<std::uint64_t> window) const {
  for (const BitPart& part : model_.parts_of(tile)) window[part.word - base_] |= part.bits;
}

bool SearchView::is_ready(const SearchTile& hinge, std::span<const std::uint64_t> window) const {
  const auto before = model_.before(hinge);
  for (std::uint32_t w = 0; w < window_; ++w)
    if ((before[w] & ~window[w]) != 0) return false;
  return true;
}
