#include "tessera/pattern/in_place.h"

#include <algorithm>
#include <numeric>

using namespace tessera::pattern;

namespace {

/// Classes of values that share storage.
class Aliases {
 public:
  explicit Aliases(std::size_t values) : parent_(values) { std::iota(parent_.begin(), parent_.end(), 0U); }
  ValueId find(ValueId value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  void join(ValueId a, ValueId b) { parent_[find(a)] = find(b); }

 private:
  std::vector<ValueId> parent_;
};

/// A value of a class: when it came to be, and when it is read last. Times count nodes from 1; 0 is before
/// them.
struct Life {
  std::uint32_t born = 0;
  std::uint32_t last_read = 0;
};

class OverwriteFinder {
 public:
  OverwriteFinder(const std::vector<StorageUse>& nodes, const std::vector<bool>& is_output)
      : nodes_(nodes), is_output_(is_output), aliases_(is_output.size()) {}

  Overwrites run() {
    out_.is_hazard.assign(nodes_.size(), false);
    const bool overwrites =
        std::ranges::any_of(nodes_, [](const StorageUse& use) { return !use.overwritten.empty(); });
    if (!overwrites) return std::move(out_);
    join_aliases();
    measure_lives();
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      if (!nodes_[node].overwritten.empty()) check(node);
    order_around_writes();
    return std::move(out_);
  }

 private:
  void join_aliases() {
    for (const StorageUse& use : nodes_) {
      if (use.is_view && !use.inputs.empty())
        for (ValueId result : use.results) aliases_.join(result, use.inputs[0]);
      for (ValueId value : use.overwritten) aliases_.join(use.results[0], value);
    }
  }

  void measure_lives() {
    std::vector<Life> lives(is_output_.size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (ValueId result : nodes_[node].results) lives[result].born = node + 1;
      for (ValueId input : nodes_[node].inputs) lives[input].last_read = node + 1;
    }
    classes_.resize(is_output_.size());
    for (ValueId value = 0; value < lives.size(); ++value) {
      if (is_output_[value]) lives[value].last_read = none;
      classes_[aliases_.find(value)].push_back(lives[value]);
    }
    for (auto& members : classes_) {
      std::ranges::sort(members, {}, &Life::born);
      for (std::size_t i = 1; i < members.size(); ++i)
        members[i].last_read = std::max(members[i].last_read, members[i - 1].last_read);
    }
  }

  /// A hazard if a value that was there before the node, in the storage it overwrites, is read after it.
  void check(std::uint32_t node) {
    for (ValueId value : nodes_[node].overwritten) {
      const auto& members = classes_[aliases_.find(value)];
      const auto later =
          std::ranges::upper_bound(members, node, {}, &Life::born);  // born <= node: before node + 1
      if (later != members.begin() && std::prev(later)->last_read > node + 1) out_.is_hazard[node] = true;
    }
  }

  /// Along each storage that is overwritten: writes stay in order, and reads between the same writes. Without
  /// a hazard too: those who read the old value are done before it is gone.
  void order_around_writes() {
    struct Storage {
      bool is_watched = false;
      std::uint32_t last_write = none;
      std::vector<std::uint32_t> readers = {};
    };
    std::vector<Storage> storages(is_output_.size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      for (ValueId value : nodes_[node].overwritten) storages[aliases_.find(value)].is_watched = true;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (ValueId input : nodes_[node].inputs) {
        Storage& storage = storages[aliases_.find(input)];
        if (!storage.is_watched) continue;
        if (storage.last_write != none) out_.orders.emplace_back(storage.last_write, node);
        storage.readers.push_back(node);
      }
      for (ValueId value : nodes_[node].overwritten) {
        Storage& storage = storages[aliases_.find(value)];
        if (storage.last_write == node) continue;
        if (storage.last_write != none) out_.orders.emplace_back(storage.last_write, node);
        for (std::uint32_t reader : storage.readers)
          if (reader != node) out_.orders.emplace_back(reader, node);
        storage.readers.clear();
        storage.last_write = node;
      }
    }
  }

  const std::vector<StorageUse>& nodes_;
  const std::vector<bool>& is_output_;
  Aliases aliases_;
  std::vector<std::vector<Life>>
      classes_;  ///< by representative: ascending by birth, last reads as running maxima
  Overwrites out_;
};

}  // namespace

Overwrites tessera::pattern::find_overwrites(const std::vector<StorageUse>& nodes,
                                             const std::vector<bool>& is_output) {
  return OverwriteFinder(nodes, is_output).run();
}
