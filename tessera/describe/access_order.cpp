#include "tessera/describe/access_order.h"

#include <algorithm>
#include <map>

using namespace tessera;
using namespace tessera::description;

namespace {

/// Positions are doubled, so that something can be put between two neighbours.
class UseSorter {
 public:
  UseSorter(std::vector<ItemUse>& uses, Reach& reach) : uses_(uses), reach_(reach) {
    for (std::size_t i = 0; i < uses.size(); ++i) keys_.push_back(2 * i + 1);
  }

  void readers_after_definitions() {
    std::vector<std::uint32_t> definers;
    std::size_t last = 0;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const bool counts = uses_[i].use.appends || (uses_[i].use.defines && definers.empty());
      if (!counts) continue;
      definers.push_back(uses_[i].item);
      last = i;
    }
    if (definers.size() > last) return;  // nothing stands in front of them
    reach_.mark_ancestors(definers);
    for (std::size_t i = 0; i < last; ++i) {
      const Use& use = uses_[i].use;
      // A loop that writes without looking is no reader: it stays where it is listed.
      if (use.looks && !use.appends && !use.defines && !reach_.is_marked(uses_[i].item))
        keys_[i] = 2 * last + 2;
    }
  }

  void readers_before_updates(const std::function<void(std::uint32_t)>& twice) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> of_value;
    for (std::size_t i = 0; i < uses_.size(); ++i)
      if (uses_[i].use.from_node != no_index)
        of_value[{uses_[i].use.from_node, uses_[i].use.from_pin}].push_back(i);
    for (const auto& [value, users] : of_value) {
      if (users.size() < 2) continue;
      const auto updates = [&](std::size_t i) { return uses_[i].use.writes && !uses_[i].use.appends; };
      const auto update = std::find_if(users.begin(), users.end(), updates);
      if (update == users.end()) continue;
      reach_.mark_descendants(uses_[*update].item);
      for (std::size_t i : users) {
        if (i <= *update || reach_.is_marked(uses_[i].item)) continue;
        if (updates(i))
          twice(uses_[i].item);
        else
          keys_[i] = 2 * *update;
      }
    }
  }

  void apply() {
    std::vector<std::size_t> order(uses_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return keys_[a] < keys_[b]; });
    std::vector<ItemUse> sorted;
    sorted.reserve(uses_.size());
    for (std::size_t i : order) sorted.push_back(uses_[i]);
    uses_ = std::move(sorted);
  }

 private:
  std::vector<ItemUse>& uses_;
  Reach& reach_;
  std::vector<std::size_t> keys_;
};

}  // namespace

void tessera::description::sort_uses(std::vector<ItemUse>& uses, Reach& reach,
                                     const std::function<void(std::uint32_t item)>& twice) {
  if (uses.size() < 2) return;
  UseSorter sorter(uses, reach);
  sorter.readers_after_definitions();
  sorter.readers_before_updates(twice);
  sorter.apply();
}

Use tessera::description::whole_use(const Graph& graph, std::span<const ItemUse> uses) {
  const Use& first = uses[0].use;
  Use out{.buffer = first.buffer, .defines = first.defines, .appends = first.appends};
  bool is_defined = false;
  for (const ItemUse& one : uses) {
    out.reads |= one.use.reads && !out.defines;
    out.looks |= one.use.looks && !is_defined;
    out.writes |= one.use.writes;
    out.appends &= one.use.appends;
    is_defined |= one.use.defines;
  }
  if (!out.appends && graph.buffers[out.buffer].is_appended && out.writes) out.reads = true;
  return out;
}

std::optional<EarlyLook> tessera::description::find_early_look(std::span<const ItemUse> uses) {
  bool may_be_written = false;
  for (const ItemUse& one : uses) {
    if (one.use.looks) return EarlyLook{one.item, may_be_written};
    if (one.use.defines) return std::nullopt;
    may_be_written |= one.use.writes;
  }
  return std::nullopt;
}

void WaitMaker::wait_for_readers(std::uint32_t item) {
  for (std::uint32_t reader : readers_)
    if (reader != item) add_(reader, item, Cause::write_after_read);
  readers_.clear();
}

void WaitMaker::use(std::uint32_t item, const Use& use) {
  if (writer_ != no_index && writer_ != item && use.reads) add_(writer_, item, Cause::read_after_write);
  // With readers between two writes, the second waits for them, and they for the first.
  if (writer_ != no_index && writer_ != item && use.writes && !use.reads && readers_.empty())
    add_(writer_, item, Cause::write_after_write);
  if (!use.writes) return readers_.push_back(item);
  wait_for_readers(item);
  writer_ = item;
}
