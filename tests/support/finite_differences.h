// Gradients against central differences in f64, along random directions, first and second order.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "tessera/autodiff/gradient.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
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

inline ir::FunctionRef parsed_function(std::string_view text) {
  const auto function = value_or_throw(ir::parse_function(text));
  value_or_throw(ir::verify(*function));
  return function;
}

/// Random floats in [0.5, 1.5] for the float parameters; the others, of rank 0, are `given` in order.
inline std::vector<op::HostTensor> inputs_for(const ir::Function& function,
                                              const std::vector<std::int64_t>& given) {
  std::mt19937_64 random(3);
  std::vector<op::HostTensor> out;
  std::size_t next = 0;
  for (const auto& param : function.params) {
    const auto type = *op::value_type(*param->type);
    out.push_back(value_or_throw(op::HostTensor::allocate(type.dtype, op::extents_of(type.shape))));
    if (type.dtype == ir::Dtype::f64) {
      for (double& v : out.back().values<double>())
        v = std::uniform_real_distribution<double>(0.5, 1.5)(random);
    } else if (type.dtype == ir::Dtype::boolean) {
      out.back().values<bool>()[0] = given.at(next++) != 0;
    } else {
      out.back().values<std::int64_t>()[0] = given.at(next++);
    }
  }
  return out;
}

/// Compares the tangents along a random direction with the central difference.
inline void check_tangents(const ir::FunctionRef& function, const std::vector<op::HostTensor>& inputs,
                           const autodiff::Rules& rules = {}) {
  std::mt19937_64 random(12);
  const auto wrt = autodiff::float_parameters(*function);
  const auto derivative = autodiff::jvp(function, wrt, rules);
  ASSERT_TRUE(derivative) << derivative.error().to_text();
  const auto sound = ir::verify(**derivative);
  ASSERT_TRUE(sound) << sound.error().to_text() << "\n" << ir::print(**derivative);
  const auto weights = random_weights(*function, inputs, random);
  std::vector<op::HostTensor> arguments = inputs, directions;
  for (std::size_t i : wrt) directions.push_back(random_like(inputs[i], random));
  arguments.insert(arguments.end(), directions.begin(), directions.end());
  const auto tangents = op::interpret(**derivative, arguments);
  ASSERT_TRUE(tangents) << tangents.error().to_text() << "\n" << ir::print(**derivative);
  double actual = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) actual += inner_product((*tangents)[k], weights[k]);
  const double measured = measured_derivative(*function, inputs, wrt, directions, weights);
  EXPECT_NEAR(actual, measured, 1e-6 * std::max(1.0, std::abs(measured))) << ir::print(**derivative);
}

/// Gradients, tangents, and gradients of gradients.
inline void check_both_orders(const ir::FunctionRef& function, const std::vector<op::HostTensor>& inputs,
                              const autodiff::Rules& rules = {}) {
  check_gradient(function, inputs, autodiff::float_parameters(*function), 1e-6, "first order", rules);
  check_tangents(function, inputs, rules);
  const auto first = autodiff::vjp(function, autodiff::float_parameters(*function), rules);
  ASSERT_TRUE(first) << first.error().to_text();
  const auto sound = ir::verify(**first);
  ASSERT_TRUE(sound) << sound.error().to_text() << "\n" << ir::print(**first);
  std::mt19937_64 random(4);
  std::vector<op::HostTensor> more = inputs;
  for (op::HostTensor& weight : random_weights(*function, inputs, random)) more.push_back(std::move(weight));
  const auto all = autodiff::float_parameters(**first);
  check_gradient(*first, more, all, 1e-5, "second order", rules);
  const auto second = autodiff::vjp(*first, all, rules);
  ASSERT_TRUE(second) << second.error().to_text();
  const auto second_sound = ir::verify(**second);
  EXPECT_TRUE(second_sound) << second_sound.error().to_text() << "\n" << ir::print(**second);
}

inline void check_both_orders(std::string_view text, const std::vector<std::int64_t>& given = {}) {
  const auto function = parsed_function(text);
  check_both_orders(function, inputs_for(*function, given));
}

/// The gradients of all float parameters for result gradients of 1.
inline std::vector<std::vector<double>> gradients_of(const ir::FunctionRef& function,
                                                     std::vector<op::HostTensor> inputs,
                                                     const autodiff::Rules& rules = {}) {
  const auto gradient = value_or_throw(autodiff::vjp(function, autodiff::float_parameters(*function), rules));
  for (const op::HostTensor& result : value_or_throw(op::interpret(*function, inputs))) {
    if (result.dtype() != ir::Dtype::f64) continue;
    inputs.push_back(converted(result, ir::Dtype::f64));
    for (double& v : inputs.back().values<double>()) v = 1;
  }
  std::vector<std::vector<double>> out;
  for (const op::HostTensor& one : value_or_throw(op::interpret(*gradient, inputs)))
    out.push_back(doubles(one));
  return out;
}

}  // namespace tessera::fixture
