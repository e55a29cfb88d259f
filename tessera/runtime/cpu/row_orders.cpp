#include "tessera/runtime/cpu/row_orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "tessera/op/wide.h"
#include "tessera/runtime/cpu/element_offset.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using op::Array;
using op::Layout;

namespace {

/// Pieces per thread: some threads are late.
constexpr std::int64_t row_pieces_per_thread = 4;

void run_rows(std::int64_t rows, ThreadPool& threads, const auto& work) {
  const auto pieces = static_cast<std::int64_t>(threads.size()) * row_pieces_per_thread;
  threads.run(rows, std::max<std::int64_t>(1, rows / pieces), work);
}

/// The first element of every row along an axis.
Layout first_along(Layout layout, std::size_t axis) {
  layout.shape[axis] = 1;
  return layout;
}

// ---- orders

/// A number in whose order the elements are: NaN is the greatest, and 0 is -0.
std::uint64_t key_of(double value) {
  if (std::isnan(value)) return std::numeric_limits<std::uint64_t>::max();
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
std::uint64_t key_of(op::SignedWide value) {
  return static_cast<std::uint64_t>(value.v) ^ (std::uint64_t{1} << 63);
}
std::uint64_t key_of(op::UnsignedWide value) { return value.v; }

/// The same in half the bits, for what was stored in 32 at most.
std::uint32_t short_key_of(double value) {
  if (std::isnan(value)) return std::numeric_limits<std::uint32_t>::max();
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) + 0.0f);
  constexpr std::uint32_t sign = std::uint32_t{1} << 31;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
std::uint32_t short_key_of(op::SignedWide value, bool is_unsigned) {
  return static_cast<std::uint32_t>(value.v) ^ (is_unsigned ? 0 : std::uint32_t{1} << 31);
}

/// An element of a row: what it is ordered by, then where it was.
struct LongEntry {
  std::uint64_t key = 0;
  std::int64_t at = 0;
  auto operator<=>(const LongEntry&) const = default;
};
/// The same in one number, for elements of 32 bits at most.
struct ShortEntry {
  std::uint64_t key_and_place = 0;
  auto operator<=>(const ShortEntry&) const = default;
};

std::int64_t place_of(const LongEntry& entry) { return entry.at; }
std::int64_t place_of(const ShortEntry& entry) {
  return static_cast<std::int64_t>(entry.key_and_place & 0xffffffff);
}

/// How a call orders.
struct Order {
  std::size_t axis = 0;
  bool is_descending = false;
  bool is_by_place = false;  ///< what is taken is left in the order that it had
  std::size_t taken = 0;
};

template <class W, class Entry>
class OrderedRows {
 public:
  OrderedRows(const Array& x, std::span<const Array> results, const Order& order)
      : x_(x),
        results_(results),
        order_(order),
        length_(static_cast<std::size_t>(x.shape()[order.axis])),
        from_(first_along(x.layout, order.axis)),
        to_values_(first_along(results[0].layout, order.axis)),
        to_places_(first_along(results[1].layout, order.axis)) {}

  void run(std::int64_t row, std::vector<W>& values, std::vector<Entry>& entries) const {
    values.resize(length_);
    entries.resize(length_);
    const std::int64_t stride = x_.layout.strides[order_.axis], from = element_offset(from_, row);
    op::loader<W>(x_.dtype)(x_.data, from, stride, length_, values.data());
    for (std::size_t i = 0; i < length_; ++i) entries[i] = entry(values[i], i);
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(order_.taken);
    if (order_.taken < length_) std::nth_element(entries.begin(), end, entries.end());
    if (order_.is_by_place)
      std::sort(entries.begin(), end,
                [](const Entry& a, const Entry& b) { return place_of(a) < place_of(b); });
    else
      std::sort(entries.begin(), end);
    write(row, from, {entries.data(), order_.taken});
  }

 private:
  Entry entry(const W& value, std::size_t i) const {
    if constexpr (std::is_same_v<Entry, LongEntry>) {
      const std::uint64_t key = key_of(value);
      return {order_.is_descending ? ~key : key, static_cast<std::int64_t>(i)};
    } else {
      std::uint32_t key;
      if constexpr (std::is_same_v<W, double>)
        key = short_key_of(value);
      else
        key = short_key_of(value, ir::is_unsigned(x_.dtype));
      return {static_cast<std::uint64_t>(order_.is_descending ? ~key : key) << 32 | i};
    }
  }

  void write(std::int64_t row, std::int64_t from, std::span<const Entry> entries) const {
    const std::int64_t stride = x_.layout.strides[order_.axis];
    std::int64_t value_at = element_offset(to_values_, row), place_at = element_offset(to_places_, row);
    for (const Entry& entry : entries) {
      const std::int64_t place = place_of(entry);
      op::copy_element(x_, from + place * stride, results_[0], value_at);
      std::memcpy(results_[1].at(place_at), &place, sizeof place);
      value_at += results_[0].layout.strides[order_.axis];
      place_at += results_[1].layout.strides[order_.axis];
    }
  }

  const Array& x_;
  std::span<const Array> results_;
  Order order_;
  std::size_t length_;
  Layout from_, to_values_, to_places_;
};

template <class W, class Entry>
void order_all(const Array& x, std::span<const Array> results, const Order& order, ThreadPool& threads) {
  const OrderedRows<W, Entry> rows(x, results, order);
  std::vector<std::vector<W>> values(threads.size());
  std::vector<std::vector<Entry>> entries(threads.size());
  const auto length = static_cast<std::size_t>(x.shape()[order.axis]);
  for (auto& one : values) one.reserve(length);  // threads must not fail
  for (auto& one : entries) one.reserve(length);
  run_rows(x.size() / static_cast<std::int64_t>(length), threads,
           [&](std::int64_t begin, std::int64_t end, unsigned thread) {
             for (std::int64_t row = begin; row < end; ++row) rows.run(row, values[thread], entries[thread]);
           });
}

Result<void> run_order(const op::CallInfo& call, const Array& x, std::span<const Array> results,
                       ThreadPool& threads) {
  Order order;
  order.axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const bool is_sort = call.card().name == "sort";
  order.is_descending = call.flag(is_sort ? "descending" : "largest");
  order.is_by_place = !is_sort && !call.flag("sorted");
  order.taken = static_cast<std::size_t>(results[0].shape()[order.axis]);
  if (x.size() == 0 || order.taken == 0) return {};
  const bool is_short = ir::size_of(x.dtype) <= 4 && x.shape()[order.axis] < (std::int64_t{1} << 32);
  op::visit_wide(x.dtype, [&]<class W>(W*) {
    if constexpr (!std::is_same_v<W, op::UnsignedWide>)
      if (is_short) return order_all<W, ShortEntry>(x, results, order, threads);
    order_all<W, LongEntry>(x, results, order, threads);
  });
  return {};
}

// ---- places of the largest and the smallest

struct Extreme {
  std::size_t axis = 0;
  bool is_largest = true, is_last = false;

  /// NaN is the largest and the smallest.
  template <class W>
  [[nodiscard]] std::uint64_t key(const W& value) const {
    if constexpr (std::is_same_v<W, double>)
      if (std::isnan(value)) return is_largest ? std::numeric_limits<std::uint64_t>::max() : 0;
    return key_of(value);
  }

  template <class W>
  [[nodiscard]] std::int64_t place_in(std::span<const W> row) const {
    std::size_t place = 0;
    std::uint64_t best = key(row[0]);
    for (std::size_t i = 1; i < row.size(); ++i) {
      const std::uint64_t next = key(row[i]);
      const bool is_better = is_largest ? next > best : next < best;
      if (!is_better && !(is_last && next == best)) continue;
      best = next;
      place = i;
    }
    return static_cast<std::int64_t>(place);
  }
};

Result<void> run_extreme(const op::CallInfo& call, const Array& x, const Array& result, ThreadPool& threads) {
  Extreme extreme{.is_largest = call.card().name == "argmax", .is_last = call.flag("select_last")};
  extreme.axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const auto length = static_cast<std::size_t>(x.shape()[extreme.axis]);
  const Layout from = first_along(x.layout, extreme.axis);
  op::visit_wide(x.dtype, [&]<class W>(W*) {
    std::vector<W> memory(length * threads.size());
    run_rows(op::element_count(from.shape), threads,
             [&](std::int64_t begin, std::int64_t end, unsigned thread) {
               const std::span<W> values(memory.data() + thread * length, length);
               for (std::int64_t row = begin; row < end; ++row) {
                 op::loader<W>(x.dtype)(x.data, element_offset(from, row), x.layout.strides[extreme.axis],
                                        length, values.data());
                 const std::int64_t place = extreme.place_in(std::span<const W>(values));
                 std::memcpy(result.at(element_offset(result.layout, row)), &place, sizeof place);
               }
             });
  });
  return {};
}

// ---- running sums and products

/// Columns that go down an axis together.
constexpr std::int64_t strip = 256;

struct ScanOptions {
  std::size_t axis = 0;
  bool is_exclusive = false, is_reverse = false;
};

/// `along`: the axis is the last one, and a row is all of it. Else a row is a strip of the last axis.
template <class W, class Combine>
class Scan {
 public:
  Scan(const Array& x, const Array& result, const ScanOptions& options, double start, Combine combine)
      : x_(x), y_(result), options_(options), start_(start), combine_(combine) {
    from_ = first_along(x.layout, options.axis);
    to_ = first_along(result.layout, options.axis);
    is_along_ = options.axis + 1 == x.rank();
    length_ = x.shape()[options.axis];
    columns_ = is_along_ ? 1 : x.shape().back();
    strips_ = is_along_ ? 1 : (columns_ + strip - 1) / strip;
    if (!is_along_) from_.shape.back() = to_.shape.back() = 1;
  }

  [[nodiscard]] std::int64_t rows() const { return op::element_count(from_.shape) * strips_; }
  /// Elements of memory that a row needs.
  [[nodiscard]] std::size_t memory() const { return static_cast<std::size_t>(is_along_ ? length_ : strip); }

  void run(std::int64_t row, W* memory) const {
    const std::int64_t from = element_offset(from_, row / strips_), to = element_offset(to_, row / strips_);
    return is_along_ ? run_along(from, to, memory) : run_down(from, to, row % strips_ * strip, memory);
  }

 private:
  void run_along(std::int64_t from, std::int64_t to, W* row) const {
    const auto count = static_cast<std::size_t>(length_);
    op::loader<W>(x_.dtype)(x_.data, from, x_.layout.strides[options_.axis], count, row);
    W total = start_;
    for (std::size_t k = 0; k < count; ++k) {
      W& element = row[options_.is_reverse ? count - 1 - k : k];
      const W next = combine_(total, element);
      element = options_.is_exclusive ? total : next;
      total = next;
    }
    op::storer<W>(y_.dtype)(y_.data, to, y_.layout.strides[options_.axis], count, row);
  }

  void run_down(std::int64_t from, std::int64_t to, std::int64_t column, W* totals) const {
    const auto count = static_cast<std::size_t>(std::min(strip, columns_ - column));
    const std::int64_t x_step = x_.layout.strides.back(), y_step = y_.layout.strides.back();
    std::array<W, strip> row;
    std::fill_n(totals, count, W(start_));
    for (std::int64_t k = 0; k < length_; ++k) {
      const std::int64_t at = options_.is_reverse ? length_ - 1 - k : k;
      op::loader<W>(x_.dtype)(x_.data, from + at * x_.layout.strides[options_.axis] + column * x_step, x_step,
                              count, row.data());
      const std::int64_t y_at = to + at * y_.layout.strides[options_.axis] + column * y_step;
      if (options_.is_exclusive) op::storer<W>(y_.dtype)(y_.data, y_at, y_step, count, totals);
      for (std::size_t i = 0; i < count; ++i) totals[i] = combine_(totals[i], row[i]);
      if (!options_.is_exclusive) op::storer<W>(y_.dtype)(y_.data, y_at, y_step, count, totals);
    }
  }

  const Array &x_, &y_;
  ScanOptions options_;
  double start_;
  Combine combine_;
  Layout from_, to_;
  bool is_along_ = false;
  std::int64_t length_ = 0, columns_ = 0, strips_ = 0;
};

template <class W, class Combine>
void scan_all(const Scan<W, Combine>& scan, ThreadPool& threads) {
  std::vector<W> memory(scan.memory() * threads.size());
  run_rows(scan.rows(), threads, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
    for (std::int64_t row = begin; row < end; ++row) scan.run(row, memory.data() + thread * scan.memory());
  });
}

Result<void> run_scan(const op::CallInfo& call, const Array& x, const Array& result, ThreadPool& threads) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const ScanOptions options{
      .axis = axis, .is_exclusive = call.flag("exclusive"), .is_reverse = call.flag("reverse")};
  if (x.size() == 0) return {};
  op::visit_wide(x.dtype, [&]<class W>(W*) {
    if (call.card().name == "cumsum")
      scan_all(Scan<W, std::plus<>>(x, result, options, 0, {}), threads);
    else
      scan_all(Scan<W, std::multiplies<>>(x, result, options, 1, {}), threads);
  });
  return {};
}

}  // namespace

Result<bool> runtime::cpu::run_row_orders(const op::CallInfo& call, std::span<const Array> inputs,
                                          std::span<const Array> results, ThreadPool& threads) {
  const std::string_view name = call.card().name;
  if (name == "sort" || name == "topk")
    TESSERA_TRY(run_order(call, inputs[0], results, threads));
  else if ((name == "argmax" || name == "argmin") && inputs[0].size() > 0)
    TESSERA_TRY(run_extreme(call, inputs[0], results[0], threads));
  else if (name == "cumsum" || name == "cumprod")
    TESSERA_TRY(run_scan(call, inputs[0], results[0], threads));
  else
    return false;
  return true;
}
