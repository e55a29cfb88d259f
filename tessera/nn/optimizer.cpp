#include "tessera/nn/optimizer.h"

#include <cmath>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using detail::fail;
using detail::have_same_shape;
using optim::OptimizerState;
using optim::Parameters;

namespace {

std::string type_of(const Tensor& tensor) {
  return cat(tensor.dtype(), "[", join(tensor.shape(), ", "), "]");
}

std::string shown(std::string_view name) { return cat("'", printable(name), "'"); }

/// What is computed and remembered in: halves have neither the range for squares nor the digits for means.
Dtype wide(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16 ? Dtype::f32 : dtype; }

Tensor as(const Tensor& tensor, Dtype dtype, Here here) {
  return tensor.dtype() == dtype ? tensor : tensor.cast(dtype, here);
}
Tensor widened(const Tensor& tensor, Here here) { return as(tensor, wide(tensor.dtype()), here); }

/// What was remembered under a name; zeros like `parameter` at first. They are computed at once, so that the
/// graph of the first step is that of all others.
Tensor& slot(OptimizerState& state, const std::string& name, const Tensor& parameter, Here here) {
  Tensor& found = state.slots[name];
  const Dtype dtype = wide(parameter.dtype());
  if (found.is_empty())
    found = zeros(parameter.shape(), {.dtype = dtype, .engine = parameter.engine()}, here).eval();
  return found = as(found, dtype, here);
}

/// Everything is checked before anything is changed: a wrong gradient leaves parameters and state as they
/// were. `slots` are the prefixes of what is remembered.
void check_step(const Parameters& parameters, const Parameters& gradients, const OptimizerState& state,
                std::initializer_list<std::string_view> slots, Here here) {
  for (const auto& [name, parameter] : parameters) {
    const Tensor& gradient = nn::get(gradients, name, here);
    if (parameter.is_empty() || gradient.is_empty())
      fail(here, cat("parameter ", shown(name), " or its gradient is empty"));
    if (!ir::is_float(parameter.dtype()))
      fail(here, cat("parameter ", shown(name), " is ", type_of(parameter), ", it must be a float"));
    if (!have_same_shape(gradient, parameter) || gradient.dtype() != parameter.dtype())
      fail(here, cat("the gradient of ", shown(name), " is ", type_of(gradient), ", the parameter is ",
                     type_of(parameter)));
    if (gradient.engine() != parameter.engine())
      fail(here, cat("parameter ", shown(name), " and its gradient are of two engines"));
    if (state.slots.empty()) continue;
    for (std::string_view prefix : slots)
      if (const auto kept = state.slots.find(cat(prefix, name));
          kept != state.slots.end() && !kept->second.is_empty() && !have_same_shape(kept->second, parameter))
        fail(here, cat("the state ", shown(kept->first), " is ", type_of(kept->second), ", the parameter is ",
                       type_of(parameter)));
  }
}

/// The gradient of a parameter, with `decay` times the parameter, as it is computed in.
Tensor gradient_of(const std::string& name, const Tensor& parameter, const Parameters& gradients,
                   double decay, Here here) {
  const Tensor gradient = widened(nn::get(gradients, name, here), here);
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
  check_step(parameters, gradients, state, {"mean/", "square/"}, here);
  const NoGrad scope;
  ++state.steps;
  const double t = static_cast<double>(state.steps);
  const double rate = step.rate / (1 - std::pow(step.beta1, t));
  const double spread = 1 / std::sqrt(1 - std::pow(step.beta2, t));
  for (auto& [name, parameter] : parameters) {
    const Tensor before = widened(parameter, here);
    const Tensor gradient = gradient_of(name, before, gradients, step.gradient_decay, here);
    Tensor& mean = slot(state, "mean/" + name, parameter, here);
    Tensor& square = slot(state, "square/" + name, parameter, here);
    mean = mean * step.beta1 + gradient * (1 - step.beta1);
    square = square * step.beta2 + gradient * gradient * (1 - step.beta2);
    const Tensor kept = step.shrink ? before * (1 - *step.shrink) : before;
    const Tensor after = kept - mean * rate / (sqrt(square) * spread + step.epsilon);
    parameter.assign(as(after, parameter.dtype(), here), here);
  }
}

}  // namespace

void tessera::optim::sgd(Parameters& parameters, const Parameters& gradients, OptimizerState& state,
                         double rate, const SgdOptions& options, Here here) {
  check_step(parameters, gradients, state, {"velocity/"}, here);
  const NoGrad scope;
  ++state.steps;
  for (auto& [name, parameter] : parameters) {
    const Tensor before = widened(parameter, here);
    Tensor change = gradient_of(name, before, gradients, options.weight_decay, here);
    if (options.momentum != 0) {
      Tensor& velocity = slot(state, "velocity/" + name, parameter, here);
      change = velocity = velocity * options.momentum + change;
    }
    parameter.assign(as(before - change * rate, parameter.dtype(), here), here);
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
  if (!(most > 0)) fail(here, cat("clip_by_norm: the norm may be at most ", most, ", it must be positive"));
  Tensor squares;
  for (const auto& [name, gradient] : gradients) {
    if (gradient.is_empty() || !ir::is_float(gradient.dtype()))
      fail(here, cat("clip_by_norm: the gradient '", printable(name), "' is ",
                     gradient.is_empty() ? "empty" : type_of(gradient), ", expected floats"));
    const Tensor one = widened(gradient, here);
    const Tensor square = sum(one * one);
    squares = squares.is_empty() ? square : squares + square;
  }
  if (squares.is_empty()) return zeros({}, {}, here);
  const Tensor norm = sqrt(squares);
  // Where every gradient is zero, most / 0 is infinite, and 1 is less.
  const Tensor factor = minimum(Operand(most, here) / norm, 1.0);
  for (auto& [name, gradient] : gradients)
    gradient = as(widened(gradient, here) * factor, gradient.dtype(), here);
  return norm;
}

void tessera::optim::eval(const Parameters& parameters, const OptimizerState& state, Here here) {
  std::vector<Tensor> all;
  for (const Parameters* part : {&parameters, &state.slots})
    for (const auto& [name, value] : *part) all.push_back(value);
  tessera::eval(std::span<const Tensor>(all), here);
}
