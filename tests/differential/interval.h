// Between which numbers a computed float may lie, and how operations widen that: what the f64 judge
// (wide_run.h) follows a program with.
#pragma once

#include <span>

#include "tessera/ir/dtype.h"
#include "tessera/ir/scalar_opcode.h"

namespace tessera::differential {

/// The numbers from `low` to `high`, infinities included, and perhaps NaN. Without numbers (low > high) it is
/// NaN for certain. The sign of a zero is not known. Truth values are 0 and 1.
struct Interval {
  double low = 0, high = 0;
  bool may_be_nan = false;

  [[nodiscard]] bool has_numbers() const { return low <= high; }
  /// Whether every correct run has this very value.
  [[nodiscard]] bool is_exact() const { return may_be_nan ? !has_numbers() : low == high; }
  [[nodiscard]] bool contains(double value) const;
  /// The largest absolute value; 0 without numbers.
  [[nodiscard]] double magnitude() const;
  bool operator==(const Interval&) const = default;
};

[[nodiscard]] Interval exactly(double value);
[[nodiscard]] Interval anything();
[[nodiscard]] Interval hull(const Interval& a, const Interval& b);
/// Every number, but no NaN, within this distance of `value`; anything if the two are no finite numbers.
[[nodiscard]] Interval around(double value, double distance);

/// How a dtype rounds.
struct Precision {
  double unit = 0;      ///< the distance of numbers from 1 to 2
  double largest = 0;   ///< what is larger may be infinite
  double smallest = 0;  ///< the distance of numbers next to 0
};
[[nodiscard]] const Precision& precision_of(ir::Dtype dtype);
/// Of what devices compute elements of this dtype in: f16 and bf16 in f32.
[[nodiscard]] const Precision& computing_precision(ir::Dtype dtype);
[[nodiscard]] bool is_representable(double value, const Precision& precision);

/// Moved outwards by so many units in the last place.
[[nodiscard]] Interval rounded(const Interval& value, double units, const Precision& precision);
/// As an element of a tensor: a number that the dtype has stays.
[[nodiscard]] Interval stored(const Interval& value, const Precision& precision);

/// What a scalar operation gives on any numbers of the operands, computed in `precision`. A result that no
/// correct way to compute it rounds stays exact. `anything` for operations that formulas of floats do not
/// have.
[[nodiscard]] Interval apply(ir::ScalarOpcode opcode, std::span<const Interval> operands,
                             const Precision& precision);

}  // namespace tessera::differential
