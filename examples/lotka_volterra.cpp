// Hares and foxes: the rates of a differential equation are found from what was seen of it, by gradients
// through the loop that solves it (Lotka and Volterra's equations, Runge and Kutta's fourth-order method).
#include <tessera/tessera.h>

#include <cmath>
#include <cstdio>

namespace ts = tessera;
using ts::Tensor;

namespace {

constexpr std::int64_t steps = 40;
constexpr double step = 0.15;

/// How fast hares and foxes change: x [2], rates [4] are growth, being eaten, starving, eating.
Tensor change(const Tensor& x, const Tensor& rates) {
  const Tensor hares = x[0], foxes = x[1];
  const Tensor more = hares * (rates[0] - rates[1] * foxes), less = foxes * (rates[3] * hares - rates[2]);
  return ts::concat({more.reshape({1}), less.reshape({1})});
}

Tensor runge_kutta(const Tensor& x, const Tensor& rates) {
  const Tensor a = change(x, rates), b = change(x + a * (step / 2), rates);
  const Tensor c = change(x + b * (step / 2), rates), d = change(x + c * step, rates);
  return x + (a + 2 * b + 2 * c + d) * (step / 6);
}

/// The numbers of both after each step: [steps, 2].
Tensor course(const Tensor& rates) {
  const Tensor begin = ts::from_vector<double>({1, 0.5}, {2});
  const Tensor empty = ts::zeros({steps, 2}, {.dtype = ts::f64});
  const Tensor places = ts::arange(steps);
  const auto body = [&](const Tensor& i, const ts::Tensors& state) {
    const Tensor x = runge_kutta(state[0], rates);
    const Tensor here = (places == i).reshape({steps, 1});
    return ts::Tensors{x, ts::where(here, x, state[1])};
  };
  return ts::for_loop(steps, body, {begin, empty})[1];
}

}  // namespace

int main() {
  const std::vector<double> truth{1.1, 0.8, 0.9, 0.6};
  const Tensor seen = course(ts::from_vector(truth, {4})).eval();

  ts::nn::Parameters p{{"rates", ts::full({4}, 0.75, {.dtype = ts::f64})}};
  ts::optim::OptimizerState state;
  constexpr int rounds = 140;
  for (int round = 0; round < rounds; ++round) {
    auto found = ts::nn::loss_and_gradients(
        [&](const ts::nn::Parameters& q) { return ts::mean(ts::square(course(q.at("rates")) - seen)); }, p);
    ts::optim::adam(p, found.gradients, state, ts::optim::cosine_decay(0.1, round, rounds));
    ts::optim::eval(p, state);
    if (round % 20 == 0) std::printf("round %3d  loss %.6f\n", round, found.loss.item<double>());
  }
  const auto rates = p["rates"].to_vector<double>();
  std::printf("rates %.2f %.2f %.2f %.2f\n", rates[0], rates[1], rates[2], rates[3]);
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) worst = std::max(worst, std::abs(rates[i] - truth[i]));
  return worst < 0.01 ? 0 : 1;
}
