// A line through noisy points, by gradient descent: what is recorded runs again and again with new numbers.
#include <tessera/tessera.h>

#include <cmath>
#include <cstdio>

namespace ts = tessera;

int main() {
  ts::set_seed(1);
  const ts::Tensor x = ts::rand({200, 1}) * 4 - 2;
  const ts::Tensor y = 3 * x - 1 + 0.1 * ts::randn({200, 1});
  ts::eval({x, y});

  ts::nn::Parameters line{{"slope", ts::zeros({1, 1})}, {"offset", ts::zeros({1})}};
  ts::optim::OptimizerState state;
  for (int step = 0; step < 100; ++step) {
    const auto [loss, gradients] = ts::nn::loss_and_gradients(
        [&](const ts::nn::Parameters& p) {
          return ts::mean(ts::square(ts::nn::linear(x, p.at("slope"), p.at("offset")) - y));
        },
        line);
    ts::optim::sgd(line, gradients, state, 0.1, {.momentum = 0.5});
    ts::optim::eval(line, state);
    if (step % 20 == 0) std::printf("step %2d  loss %.4f\n", step, loss.item<float>());
  }
  const float slope = line["slope"].item<float>({0, 0}), offset = line["offset"].item<float>({0});
  std::printf("y = %.1f x %+.1f\n", slope, offset);
  return std::abs(slope - 3) < 0.05 && std::abs(offset + 1) < 0.05 ? 0 : 1;
}
