// Costs as whole numbers, so that sums do not depend on their order and ties are exact.
#pragma once

#include <cmath>
#include <cstdint>

namespace tessera::cover {

/// A cost in units of a CostScale.
using Cost = std::int64_t;

/// Turns costs into whole numbers by a power of two, chosen so that sums up to a given total fit.
class CostScale {
 public:
  CostScale() = default;
  /// REQUIRES total is finite and not negative. Sums of costs up to `total` stay below 2^51 quanta.
  explicit CostScale(double total);

  /// The cost in quanta, rounded to the nearest. REQUIRES 0 <= cost <= total.
  [[nodiscard]] Cost quanta(double cost) const;
  /// Whether `cost` is a whole number of quanta.
  [[nodiscard]] bool is_exact(double cost) const;
  /// Makes `quanta_per_unit` quanta the unit that real() counts in.
  void set_unit(Cost quanta_per_unit) { quanta_per_unit_ = quanta_per_unit; }
  [[nodiscard]] Cost quanta_per_unit() const { return quanta_per_unit_; }
  /// What `units` are as a number of the caller.
  [[nodiscard]] double real(Cost units) const;
  /// One quantum as a number of the caller: twice the most that rounding changed a cost.
  [[nodiscard]] double quantum() const;

 private:
  [[nodiscard]] double scaled(double cost) const;

  int exponent_ = 0;   ///< a cost c is c * 2^exponent quanta
  double factor_ = 0;  ///< that power of two, or 0 if it is no double
  Cost quanta_per_unit_ = 1;
};

/// Costs with bits below the point, for bounds that divide costs up. A bound on a cost is a whole number
/// again.
class FineCosts {
 public:
  /// REQUIRES 0 <= total < 2^51, the most that costs add up to. Fine sums stay below 2^54.
  explicit FineCosts(Cost total);
  [[nodiscard]] Cost of(Cost cost) const { return cost << bits_; }
  /// The least cost that is not below `fine`.
  [[nodiscard]] Cost rounded_up(Cost fine) const { return (fine + (Cost{1} << bits_) - 1) >> bits_; }

 private:
  int bits_ = 0;
};

/// A sum of doubles whose error does not grow with the number of terms.
class RealSum {
 public:
  void add(double value) {
    const double next = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  [[nodiscard]] double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace tessera::cover
