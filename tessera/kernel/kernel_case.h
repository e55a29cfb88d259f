// A function and its kernel side by side, for tests.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tessera/ir/parse.h"
#include "tessera/kernel/build.h"
#include "tessera/kernel/interpreter.h"
#include "tessera/op/interpreter.h"
#include "tests/support/slot_bits.h"

namespace tessera::kernel {

inline ir::FunctionRef parsed(const std::string& text) { return value_or_throw(ir::parse_function(text)); }
inline Kernel built(const std::string& text) { return value_or_throw(build(*parsed(text))); }

inline std::vector<op::Array> arrays_of(const std::vector<op::HostTensor>& tensors) {
  std::vector<op::Array> out;
  for (const op::HostTensor& tensor : tensors) out.push_back(tensor.array());
  return out;
}

/// Of rank 0.
inline op::HostTensor number(std::int64_t value) {
  return op::HostTensor::of<std::int64_t>(Dtype::i64, {}, std::vector{value});
}

/// Numbers from -2 to 2, and small integers.
inline op::HostTensor random_tensor(Dtype dtype, const op::Extents& shape, std::mt19937_64& random) {
  op::HostTensor wide = value_or_throw(op::HostTensor::allocate(Dtype::f64, shape));
  for (double& value : wide.values<double>()) value = static_cast<double>(random() % 4001) * 1e-3 - 2.0;
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, shape));
  op::copy_elements(wide.array(), out.array());
  return out;
}

inline std::vector<op::HostTensor> random_inputs(const ir::Function& function, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<op::HostTensor> out;
  for (const auto& param : function.params) {
    const auto& type = static_cast<const ir::TensorType&>(*param->type);
    out.push_back(random_tensor(type.dtype, *ir::constant_shape(type.shape), random));
  }
  return out;
}

inline std::vector<op::HostTensor> empty_like(const std::vector<op::HostTensor>& tensors) {
  std::vector<op::HostTensor> out;
  for (const op::HostTensor& tensor : tensors) {
    out.push_back(value_or_throw(op::HostTensor::allocate(tensor.dtype(), tensor.shape())));
    std::memset(out.back().array().data, 0x5a, out.back().byte_size());
  }
  return out;
}

/// The largest difference, relative above 1; infinite if one is NaN and the other is not.
inline double difference(const op::HostTensor& a, const op::HostTensor& b) {
  op::HostTensor x = value_or_throw(op::HostTensor::allocate(Dtype::f64, a.shape())),
                 y = value_or_throw(op::HostTensor::allocate(Dtype::f64, a.shape()));
  op::copy_elements(a.array(), x.array());
  op::copy_elements(b.array(), y.array());
  double worst = 0;
  for (std::size_t i = 0; i < x.values<double>().size(); ++i) {
    const double p = x.values<double>()[i], q = y.values<double>()[i];
    if (p == q || (std::isnan(p) && std::isnan(q))) continue;
    const double d = std::abs(p - q) / std::max(1.0, std::abs(q));
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst;
}

/// Runs the function by the reference and as a kernel, and compares.
inline void expect_same(const ir::Function& function, const Kernel& kernel, double tolerance,
                        std::uint64_t seed = 1, std::span<const double> parameters = {}) {
  const auto inputs = random_inputs(function, seed);
  op::InterpreterOptions options;
  const auto bits = fixture::slot_bits(function, parameters);
  options.parameters = bits;
  const auto expected = op::interpret(function, inputs, options);
  ASSERT_TRUE(expected) << expected.error().to_text();
  const auto results = empty_like(*expected);
  Scratch scratch;
  const Interpreter interpreter(kernel);
  const auto done = run(interpreter, arrays_of(inputs), arrays_of(results), bits, scratch);
  ASSERT_TRUE(done) << done.error().to_text();
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_LE(difference(results[i], (*expected)[i]), tolerance) << "result " << i << "\n" << to_text(kernel);
}

}  // namespace tessera::kernel
