// Comparing tensors in tests.
#pragma once

#include <cmath>
#include <cstring>

#include "tessera/op/interpreter.h"
#include "tessera/op/wide.h"

namespace tessera::fixture {

/// What a device may differ by from the reference, which computes in f64 and rounds once: relative, or
/// absolute below 1.
inline double tolerance(ir::Dtype dtype) {
  switch (dtype) {
    case ir::Dtype::f64:
      return 1e-12;
    case ir::Dtype::f32:
      return 2e-6;
    case ir::Dtype::f16:
      return 1.0 / 1024;
    case ir::Dtype::bf16:
      return 1.0 / 128;
    default:
      return 0;
  }
}

/// One element as a scalar.
inline op::ScalarValue element(const op::Array& array, std::int64_t offset) {
  op::ScalarValue out{array.dtype, 0, 0};
  if (ir::is_float(array.dtype)) {
    op::loader<double>(array.dtype)(array.data, offset, 1, 1, &out.number);
  } else {
    op::SignedWide integer;
    op::loader<op::SignedWide>(array.dtype)(array.data, offset, 1, 1, &integer);
    out.integer = integer.v;
  }
  return out;
}

inline bool same_bits(const op::HostTensor& a, const op::HostTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.array().data, b.array().data, a.byte_size()) == 0;
}

inline op::HostTensor converted(const op::HostTensor& from, ir::Dtype dtype) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, from.shape()));
  op::copy_elements(from.array(), out.array());
  return out;
}

inline std::vector<double> doubles(const op::HostTensor& tensor) {
  const op::HostTensor wide = converted(tensor, ir::Dtype::f64);
  const auto values = wide.values<double>();
  return {values.begin(), values.end()};
}

/// The largest difference, relative where values are large. Two NaN or two equal infinities do not differ;
/// infinity if the shapes do.
inline double largest_difference(const op::HostTensor& a, const op::HostTensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const auto x = doubles(a), y = doubles(b);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double difference = std::abs(x[i] - y[i]) / std::max(1.0, std::abs(y[i]));
    if (!(difference <= worst)) worst = difference;  // also if it is NaN
    if (std::isnan(worst)) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

}  // namespace tessera::fixture
