// Newton's method as a loop of the graph: the slope comes from a gradient, the loop stops by itself, and the
// gradient of the root with respect to the number flows back through the loop.
#include <tessera/tessera.h>

#include <cmath>
#include <cstdio>

namespace ts = tessera;
using ts::Tensor;

namespace {

/// The cube root of `a`: where x³ - a is zero.
Tensor cube_root(const Tensor& a) {
  const auto f = [&](const Tensor& x) { return x * x * x - a; };
  const auto too_far = [&](const ts::Tensors& state) { return ts::abs(f(state[0])) > 1e-12; };
  const auto closer = [&](const ts::Tensors& state) {
    return ts::Tensors{state[0] - f(state[0]) / ts::grad(f)(state[0])};
  };
  const Tensor first = ts::ones({}, {.dtype = ts::f64});
  return ts::while_loop(too_far, closer, {first}, {.max_iterations = 50})[0];
}

}  // namespace

int main() {
  const Tensor a = ts::full({}, 10, {.dtype = ts::f64});
  const auto [root, slopes] =
      ts::value_and_grad([](const std::vector<Tensor>& xs) { return cube_root(xs[0]); })({a});
  const double x = root.item<double>(), slope = slopes[0].item<double>();
  std::printf("the cube root of 10 is %.10f, and grows by %.8f per unit\n", x, slope);
  const bool right = std::abs(x - std::cbrt(10.0)) < 1e-12 && std::abs(slope - 1 / (3 * x * x)) < 1e-9;
  return right ? 0 : 1;
}
