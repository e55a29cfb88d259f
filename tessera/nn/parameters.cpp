#include "tessera/nn/parameters.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/tensor/gradient.h"

using namespace tessera;
using nn::Parameters;

namespace {

std::vector<Tensor> values_of(const Parameters& parameters) {
  std::vector<Tensor> out;
  for (const auto& [name, value] : parameters) out.push_back(value);
  return out;
}

/// The names of `like` with other tensors.
Parameters named_like(const Parameters& like, const std::vector<Tensor>& values) {
  Parameters out;
  std::size_t i = 0;
  for (const auto& [name, old] : like) out.emplace_hint(out.end(), name, values[i++]);
  return out;
}

}  // namespace

nn::LossAndGradients tessera::nn::loss_and_gradients(const Loss& loss, const Parameters& parameters,
                                                     Here here) {
  const auto of_values = [&](const std::vector<Tensor>& values) {
    return loss(named_like(parameters, values));
  };
  auto found = value_and_grad(of_values, {}, here)(values_of(parameters));
  return {std::move(found.value), named_like(parameters, found.gradients)};
}

void tessera::nn::eval(const Parameters& parameters, Here here) {
  const auto values = values_of(parameters);
  tessera::eval(std::span<const Tensor>(values), here);
}

const Tensor& tessera::nn::get(const Parameters& parameters, const std::string& name, Here here) {
  const auto found = parameters.find(name);
  if (found != parameters.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : parameters) names.push_back(known);
  throw Exception(Error(ErrorCode::not_found,
                        cat("nothing is named '", printable(name), "'; there are: ", join(names, ", ")),
                        SourceSpan{here.file, here.line, 0}));
}

Tensor tessera::nn::get(Parameters&& parameters, const std::string& name, Here here) {
  return get(std::as_const(parameters), name, here);
}
