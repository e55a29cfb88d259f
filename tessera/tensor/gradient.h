// Gradients of tensors, by the gradients of the cards, in reverse. The results are recorded tensors like any
// others, so that gradients of gradients need nothing more.
//
//   auto [loss, gradients] = ts::value_and_grad(loss_of)({w, b});  // of a function
//
//   w.requires_grad();  // or of what was recorded
//   loss_of({w, b}).backward();
//   w = w - 0.1 * w.grad();
#pragma once

#include <functional>
#include <vector>

#include "tessera/tensor/tensor.h"
#include "tessera/tensor/tree.h"

namespace tessera {

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// The gradients of sum(y * dy) with respect to `xs`; zeros where nothing depends on one. `y` is a float;
/// `dy` may be left out if y has one element. The xs are tracked: they, or what they came from,
/// `requires_grad`.
[[nodiscard]] std::vector<Tensor> gradients(const Tensor& y, const std::vector<Tensor>& xs,
                                            const Tensor& dy = {}, Here here = {});

struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;
  static constexpr auto fields() {
    return std::tuple{field("value", &ValueAndGradients::value),
                      field("gradients", &ValueAndGradients::gradients)};
  }
};
/// Value and gradients of `f`, which gives one number, with respect to the arguments `wrt` (all of them, if
/// empty).
[[nodiscard]] std::function<ValueAndGradients(const std::vector<Tensor>&)> value_and_grad(
    TensorFunction f, std::vector<std::size_t> wrt = {}, Here here = {});
/// The gradients alone.
[[nodiscard]] std::function<std::vector<Tensor>(const std::vector<Tensor>&)> grad(
    TensorFunction f, std::vector<std::size_t> wrt = {}, Here here = {});
/// The gradient of a function of one tensor.
[[nodiscard]] std::function<Tensor(const Tensor&)> grad(std::function<Tensor(const Tensor&)> f,
                                                        Here here = {});
template <class F>
requires std::is_invocable_r_v<Tensor, F, const Tensor&> &&
    (!std::is_invocable_v<F, const std::vector<Tensor>&>)
        [[nodiscard]] std::function<Tensor(const Tensor&)> grad(F f, Here here = {}) {
  return grad(std::function<Tensor(const Tensor&)>(std::move(f)), here);
}

/// The value of `f` at `xs`, and the gradients of sum(value * dy).
[[nodiscard]] ValueAndGradients vjp(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy,
                                    Here here = {});

struct ValueAndTangent {
  Tensor value, tangent;
  static constexpr auto fields() {
    return std::tuple{field("value", &ValueAndTangent::value), field("tangent", &ValueAndTangent::tangent)};
  }
};
/// The value of `f` at `xs`, and how it changes when xs change by `tangents`.
[[nodiscard]] ValueAndTangent jvp(const TensorFunction& f, const std::vector<Tensor>& xs,
                                  const std::vector<Tensor>& tangents, Here here = {});

/// `f`, whose values are computed again for the gradient instead of being kept. Random numbers are the same
/// both times. Gradients flow into the arguments and into what `f` captures.
[[nodiscard]] TensorFunction checkpoint(TensorFunction f, Here here = {});

/// `f` with a gradient of its own: `rule` takes the arguments, the value and its gradient, and gives the
/// gradients of the arguments; an empty tensor where none flows. What `f` captures counts as constant. Inside
/// a region the rule is traced with the body.
using GradientRule =
    std::function<std::vector<Tensor>(const std::vector<Tensor>& xs, const Tensor& y, const Tensor& dy)>;
[[nodiscard]] TensorFunction custom_gradient(TensorFunction f, GradientRule rule, Here here = {});

/// While it lives, what this thread records tracks no gradients: `ts::NoGrad scope;`
class [[nodiscard]] NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
inline NoGrad no_grad() { return NoGrad(); }

}  // namespace tessera
