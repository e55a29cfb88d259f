// What is trained: tensors by name, and a loss that is a function of them.
//
//   const auto loss_at = [&](const nn::Parameters& p) { return ts::mean(ts::square(model(p, x) - y)); };
//   auto [loss, gradients] = nn::loss_and_gradients(loss_at, parameters);
#pragma once

#include <functional>
#include <vector>

#include "tessera/tensor/io.h"
#include "tessera/tensor/tensor.h"
#include "tessera/tensor/tree.h"

namespace tessera::nn {

/// In the order of the names, which is the order of everything that is recorded for them.
using Parameters = NamedTensors;
/// Gives one number.
using Loss = std::function<Tensor(const Parameters&)>;

struct LossAndGradients {
  Tensor loss;
  Parameters gradients;  ///< one for each parameter, of its name
  static constexpr auto fields() {
    return std::tuple{field("loss", &LossAndGradients::loss),
                      field("gradients", &LossAndGradients::gradients)};
  }
};

/// Records the loss at `parameters` and its gradients; computes nothing.
[[nodiscard]] LossAndGradients loss_and_gradients(const Loss& loss, const Parameters& parameters,
                                                  Here here = {});

/// Computes and stores all of them in one go.
void eval(const Parameters& parameters, Here here = {});

/// The parameter, or the gradient, `name`. Throws Exception, and says which there are, if there is none.
[[nodiscard]] const Tensor& get(const Parameters& parameters, const std::string& name, Here here = {});
[[nodiscard]] Tensor get(Parameters&& parameters, const std::string& name, Here here = {});

}  // namespace tessera::nn
