// Gradients against central differences in f64, along random directions.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "tessera/autodiff/gradient.h"
#include "tessera/ir/print.h"
#include "tessera/op/interpreter.h"
#include "tests/support/compare.h"

namespace tessera::fixture {

inline op::HostTensor random_like(const op::HostTensor& tensor, std::mt19937_64& random) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(ir::Dtype::f64, tensor.shape()));
  for (double& v : out.values<double>()) v = std::uniform_real_distribution<double>(-1, 1)(random);
  return out;
}

/// The sum over all float results of results * weights.
inline double weighted(const ir::Function& function, const std::vector<op::HostTensor>& inputs,
                       const std::vector<op::HostTensor>& weights) {
  const auto results = value_or_throw(op::interpret(function, inputs));
  double total = 0;
  std::size_t k = 0;
  for (const op::HostTensor& result : results) {
    if (result.dtype() != ir::Dtype::f64) continue;
    const auto values = result.values<double>();
    const auto w = weights[k++].values<double>();
    for (std::size_t i = 0; i < values.size(); ++i) total += values[i] * w[i];
  }
  return total;
}

/// Random weights for the float results of a function.
inline std::vector<op::HostTensor> random_weights(const ir::Function& function,
                                                  const std::vector<op::HostTensor>& inputs,
                                                  std::mt19937_64& random) {
  std::vector<op::HostTensor> out;
  for (const op::HostTensor& result : value_or_throw(op::interpret(function, inputs)))
    if (result.dtype() == ir::Dtype::f64) out.push_back(random_like(result, random));
  return out;
}

/// The derivative along `directions` of the parameters `wrt`, by a central difference.
inline double measured_derivative(const ir::Function& function, const std::vector<op::HostTensor>& inputs,
                                  std::span<const std::size_t> wrt,
                                  const std::vector<op::HostTensor>& directions,
                                  const std::vector<op::HostTensor>& weights) {
  constexpr double h = 1e-5;
  std::vector<op::HostTensor> plus = inputs, minus = inputs;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    plus[wrt[k]] = converted(inputs[wrt[k]], ir::Dtype::f64);
    minus[wrt[k]] = converted(inputs[wrt[k]], ir::Dtype::f64);
    const auto direction = directions[k].values<double>();
    for (std::size_t i = 0; i < direction.size(); ++i) {
      plus[wrt[k]].values<double>()[i] += h * direction[i];
      minus[wrt[k]].values<double>()[i] -= h * direction[i];
    }
  }
  return (weighted(function, plus, weights) - weighted(function, minus, weights)) / (2 * h);
}

inline double inner_product(const op::HostTensor& a, const op::HostTensor& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.values<double>().size(); ++i)
    out += a.values<double>()[i] * b.values<double>()[i];
  return out;
}

/// Compares the derivative along two random directions of the parameters `wrt` with central differences.
inline void check_gradient(const ir::FunctionRef& function, const std::vector<op::HostTensor>& inputs,
                           std::span<const std::size_t> wrt, double tolerance, const std::string& what,
                           const autodiff::Rules& rules = {}) {
  std::mt19937_64 random(11);
  const auto gradient = autodiff::vjp(function, wrt, rules);
  ASSERT_TRUE(gradient) << what << ": " << gradient.error().to_text();
  const auto weights = random_weights(*function, inputs, random);
  std::vector<op::HostTensor> arguments = inputs;
  arguments.insert(arguments.end(), weights.begin(), weights.end());
  const auto gradients = op::interpret(**gradient, arguments);
  ASSERT_TRUE(gradients) << what << ": " << gradients.error().to_text() << "\n" << ir::print(**gradient);
  for (int round = 0; round < 2; ++round) {
    std::vector<op::HostTensor> directions;
    double expected = 0;
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      ASSERT_EQ((*gradients)[k].shape(), inputs[wrt[k]].shape()) << what;
      directions.push_back(random_like(inputs[wrt[k]], random));
      expected += inner_product((*gradients)[k], directions[k]);
    }
    const double measured = measured_derivative(*function, inputs, wrt, directions, weights);
    EXPECT_NEAR(expected, measured, tolerance * std::max(1.0, std::abs(measured))) << what;
  }
}

}  // namespace tessera::fixture
