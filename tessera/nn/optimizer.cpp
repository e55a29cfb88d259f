#include "tessera/nn/optimizer.h"

#include <cmath>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using optim::OptimizerState;
using optim::Parameters;

namespace {

/// What was remembered under a name; zeros like `parameter` at first. They are computed at once, so that the
/// graph of the first step is that of all others.
Tensor& slot(OptimizerState& state, const std::string& name, const Tensor& parameter, Here here) {
  Tensor& found = state.slots[name];
  if (found.is_empty())
    found = zeros(parameter.shape(), {.dtype = parameter.dtype(), .engine = parameter.engine()}, here).eval();
  return found;
}

/// Everything is checked before anything is changed: a wrong gradient leaves parameters and state as they
/// were.
void check_gradients(const Parameters& parameters, const Parameters& gradients, Here here) {
  const auto fail = [&](const std::string& message) {
    throw Exception(Error(ErrorCode::invalid_argument, message, SourceSpan{here.file, here.line, 0}));
  };
  for (const auto& [name, parameter] : parameters) {
    const Tensor& gradient = nn::get(gradients, name, here);
    if (parameter.is_empty() || gradient.is_empty())
      fail(cat("parameter '", printable(name), "' or its gradient is empty"));
    if (gradient.shape() != parameter.shape() || gradient.dtype() != parameter.dtype())
      fail(cat("the gradient of '", printable(name), "' is ", gradient.dtype(), "[",
               join(gradient.shape(), ", "), "], the parameter is ", parameter.dtype(), "[",
               join(parameter.shape(), ", "), "]"));
  }
}

/// The gradient of a parameter, with `decay` times the parameter.
Tensor gradient_of(const std::string& name, const Tensor& parameter, const Parameters& gradients,
                   double decay, Here here) {
  const Tensor& gradient = nn::get(gradients, name, here);
  return decay == 0 ? gradient : gradient + parameter * decay;
}

struct AdamStep {
  double beta1, beta2, epsilon;
  double rate;
  double gradient_decay;         ///< added to the gradient
  std::optional<double> shrink;  ///< taken from the parameter; whether at all does not depend on the rate
};

void adam_step(Parameters& parameters, const Parameters& gradients, OptimizerState& state,
               const AdamStep& step, Here here) {
  check_gradients(parameters, gradients, here);
  const NoGrad scope;
  ++state.steps;
  const double t = static_cast<double>(state.steps);
  const double rate = step.rate / (1 - std::pow(step.beta1, t));
  const double spread = 1 / std::sqrt(1 - std::pow(step.beta2, t));
  for (auto& [name, parameter] : parameters) {
    const Tensor gradient = gradient_of(name, parameter, gradients, step.gradient_decay, here);
    Tensor& mean = slot(state, "mean/" + name, parameter, here);
    Tensor& square = slot(state, "square/" + name, parameter, here);
    mean = mean * step.beta1 + gradient * (1 - step.beta1);
    square = square * step.beta2 + gradient * gradient * (1 - step.beta2);
    const Tensor kept = step.shrink ? parameter * (1 - *step.shrink) : parameter;
    parameter.assign(kept - mean * rate / (sqrt(square) * spread + step.epsilon), here);
  }
}

}  // namespace

void tessera::optim::sgd(Parameters& parameters, const Parameters& gradients, OptimizerState& state,
                         double rate, const SgdOptions& options, Here here) {
  check_gradients(parameters, gradients, here);
  const NoGrad scope;
  ++state.steps;
  for (auto& [name, parameter] : parameters) {
    Tensor change = gradient_of(name, parameter, gradients, options.weight_decay, here);
    if (options.momentum != 0) {
      Tensor& velocity = slot(state, "velocity/" + name, parameter, here);
      change = velocity = velocity * options.momentum + change;
    }
    parameter.assign(parameter - change * rate, here);
  }
}

void tessera::optim::adam(Parameters& parameters, const Parameters& gradients, OptimizerState& state,
                          double rate, const AdamOptions& options, Here here) {
  adam_step(parameters, gradients, state,
            {options.beta1, options.beta2, options.epsilon, rate, options.weight_decay, {}}, here);
}

void tessera::optim::adamw(Parameters& parameters, const Parameters& gradients, OptimizerState& state,
                           double rate, const AdamwOptions& options, Here here) {
  adam_step(parameters, gradients, state,
            {options.beta1, options.beta2, options.epsilon, rate, 0, rate * options.weight_decay}, here);
}

Tensor tessera::optim::clip_by_norm(Parameters& gradients, double most, Here here) {
  const NoGrad scope;
  if (!(most > 0))
    throw Exception(Error(ErrorCode::invalid_argument,
                          cat("clip_by_norm: the norm may be at most ", most, ", it must be positive"),
                          SourceSpan{here.file, here.line, 0}));
  Tensor squares;
  for (const auto& [name, gradient] : gradients) {
    const Tensor square = sum(gradient * gradient);
    squares = squares.is_empty() ? square : squares + square;
  }
  if (squares.is_empty()) return zeros({}, {}, here);
  const Tensor norm = sqrt(squares);
  // Where every gradient is zero, most / 0 is infinite, and 1 is less.
  const Tensor factor = minimum(Operand(most, here) / norm, 1.0);
  for (auto& [name, gradient] : gradients) gradient = gradient * factor;
  return norm;
}

void tessera::optim::eval(const Parameters& parameters, const OptimizerState& state, Here here) {
  std::vector<Tensor> all;
  for (const Parameters* part : {&parameters, &state.slots})
    for (const auto& [name, value] : *part) all.push_back(value);
  tessera::eval(std::span<const Tensor>(all), here);
}
