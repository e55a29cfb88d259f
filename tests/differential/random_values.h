// Random numbers, choices and tensors. Floats lie on an exact grid of quarters, so that comparisons and
// roundings see values that every correct way to compute them has.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tessera/op/value_type.h"
#include "tessera/op/wide.h"

namespace tessera::differential {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::size_t below(std::size_t bound) { return engine_() % bound; }
  /// True once in `n` times.
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& any(const List& list) {
    return list[below(std::size(list))];
  }
  /// A number of the grid in [low, high].
  double number(double low, double high) {
    const auto steps = static_cast<std::size_t>(std::floor((high - low) * 4));
    return low + 0.25 * static_cast<double>(below(steps + 1));
  }

  /// REQUIRES sizes that are numbers. With `specials`, now and then NaN, infinities, -0 and large numbers.
  op::HostTensor tensor(const op::ValueType& type, double low, double high, bool specials) {
    const op::HostTensor out =
        value_or_throw(op::HostTensor::allocate(type.dtype, op::extents_of(type.shape)));
    std::vector<double> values(static_cast<std::size_t>(out.size()));
    specials = specials && one_in(8);
    for (double& value : values) value = element(type.dtype, low, high, specials);
    op::storer<double>(type.dtype)(out.array().data, 0, 1, values.size(), values.data());
    return out;
  }

  std::mt19937_64& engine() { return engine_; }

 private:
  double element(ir::Dtype dtype, double low, double high, bool specials) {
    static constexpr double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     -0.0,
                                     1e30,
                                     -1e30,
                                     0.0};
    if (specials && one_in(3)) return any(odd);
    if (dtype == ir::Dtype::boolean) return static_cast<double>(below(2));
    if (ir::is_float(dtype)) return number(low, high);
    const double first = ir::is_unsigned(dtype) ? std::max(0.0, low) : low;
    return std::floor(first) +
           static_cast<double>(below(static_cast<std::size_t>(std::max(0.0, high - first)) + 1));
  }

  std::mt19937_64 engine_;
};

}  // namespace tessera::differential
