// Lists of different lengths in one piece of memory.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace tessera::pattern {

/// Row r is a list of T. Rows are appended one after another, or made from pairs.
template <class T>
class Rows {
 public:
  [[nodiscard]] std::span<const T> operator[](std::size_t row) const {
    return {items_.data() + begin_[row], begin_[row + 1] - begin_[row]};
  }
  [[nodiscard]] std::span<T> mutable_row(std::size_t row) {
    return {items_.data() + begin_[row], begin_[row + 1] - begin_[row]};
  }
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }
  [[nodiscard]] std::size_t item_count() const { return items_.size(); }
  void reserve(std::size_t rows, std::size_t items) {
    begin_.reserve(rows + 1);
    items_.reserve(items);
  }

  /// Adds to the row that is being written.
  void push(const T& item) { items_.push_back(item); }
  /// Ends the row that is being written.
  void end_row() { begin_.push_back(items_.size()); }
  void append(std::span<const T> row) {
    items_.insert(items_.end(), row.begin(), row.end());
    end_row();
  }

  /// `rows` rows; `for_each_pair(visit)` calls visit(row, item) for every item, the same way each time it is
  /// called. Items of a row keep the order in which they come.
  template <class ForEachPair>
  static Rows from_pairs(std::size_t rows, const ForEachPair& for_each_pair) {
    Rows out;
    out.begin_.assign(rows + 1, 0);
    for_each_pair([&](std::size_t row, const T&) { ++out.begin_[row + 1]; });
    std::partial_sum(out.begin_.begin(), out.begin_.end(), out.begin_.begin());
    out.items_.resize(out.begin_.back());
    std::vector<std::size_t> cursor(out.begin_.begin(), out.begin_.end() - 1);
    for_each_pair([&](std::size_t row, const T& item) { out.items_[cursor[row]++] = item; });
    return out;
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<T> items_;
};

}  // namespace tessera::pattern
