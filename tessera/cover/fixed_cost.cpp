#include "tessera/cover/fixed_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace tessera::cover;

CostScale::CostScale(double total) {
  int exponent = 0;
  std::frexp(total, &exponent);  // total < 2^exponent
  exponent_ = 50 - exponent;
}

Cost CostScale::quanta(double cost) const { return std::llround(std::ldexp(cost, exponent_)); }

bool CostScale::is_exact(double cost) const {
  return std::ldexp(static_cast<double>(quanta(cost)), -exponent_) == cost;
}

double CostScale::real(Cost units) const {
  return std::ldexp(static_cast<double>(units * quanta_per_unit_), -exponent_);
}

double CostScale::quantum() const { return std::ldexp(1.0, -exponent_); }

FineCosts::FineCosts(Cost total)
    : bits_(std::clamp(53 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total))), 0, 20)) {}

void RealSum::add(double value) {
  const double next = sum_ + value;
  lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_;
  sum_ = next;
}
