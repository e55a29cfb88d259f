// Optimisers: one step is a function of parameters, gradients and what was remembered. Rates and the other
// numbers are scalars of the recorded calls, so that a rate that changes from step to step leaves the graph
// as it is. A step records; nothing is computed before eval(parameters).
//
//   optim::OptimizerState state;
//   optim::adam(parameters, gradients, state, rate);
#pragma once

#include <cstdint>

#include "tessera/nn/parameters.h"

namespace tessera::optim {

using nn::Parameters;

/// What an optimiser remembers from step to step. Empty before the first.
struct OptimizerState {
  std::int64_t steps = 0;
  Parameters slots;  ///< "velocity/NAME", "mean/NAME", "square/NAME"; f32 for parameters of f16 and bf16
  static constexpr auto fields() { return std::tuple{field("slots", &OptimizerState::slots)}; }
};

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;  ///< this times the parameter is added to its gradient
};
/// v = momentum * v + g; p = p - rate * v. Without momentum nothing is remembered.
void sgd(Parameters& parameters, const Parameters& gradients, OptimizerState& state, double rate,
         const SgdOptions& options = {}, Here here = {});

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< this times the parameter is added to its gradient
};
/// Kingma and Ba, 2015, with both means corrected for their start at zero.
void adam(Parameters& parameters, const Parameters& gradients, OptimizerState& state, double rate,
          const AdamOptions& options = {}, Here here = {});

struct AdamwOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  ///< parameters shrink by rate * this, beside the gradient
};
/// Loshchilov and Hutter, 2019.
void adamw(Parameters& parameters, const Parameters& gradients, OptimizerState& state, double rate,
           const AdamwOptions& options = {}, Here here = {});

/// Makes the gradients smaller, all by the same factor, if their common norm is above `most`; gives the norm
/// they had. Dtypes stay; the norm of f16 and bf16 is computed in f32.
Tensor clip_by_norm(Parameters& gradients, double most, Here here = {});

/// Computes and stores parameters and state in one go.
void eval(const Parameters& parameters, const OptimizerState& state, Here here = {});

}  // namespace tessera::optim
