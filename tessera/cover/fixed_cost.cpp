#include "tessera/cover/fixed_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace tessera::cover;

CostScale::CostScale(double total) {
  int exponent = 0;
  std::frexp(total, &exponent);  // total < 2^exponent
  exponent_ = 50 - exponent;
  // Beyond that a power of two is no double any more.
  if (std::abs(exponent_) < 1000) factor_ = std::ldexp(1.0, exponent_);
}

double CostScale::scaled(double cost) const {
  return factor_ != 0 ? cost * factor_ : std::ldexp(cost, exponent_);
}

Cost CostScale::quanta(double cost) const { return std::llround(scaled(cost)); }

bool CostScale::is_exact(double cost) const {
  const double exact = scaled(cost);
  return std::floor(exact) == exact && (exact > 0 || cost == 0);
}

double CostScale::real(Cost units) const {
  return std::ldexp(static_cast<double>(units * quanta_per_unit_), -exponent_);
}

double CostScale::quantum() const { return std::ldexp(1.0, -exponent_); }

FineCosts::FineCosts(Cost total)
    : bits_(std::clamp(53 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total))), 0, 20)) {}
