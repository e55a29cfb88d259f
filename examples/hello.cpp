// The example of the README: a softmax layer, recorded, computed, and trained.
#include <tessera/tessera.h>

#include <cstdio>

namespace ts = tessera;

int main() {
  // clang-format off
  ts::Tensor x = ts::rand({64, 784}), w = ts::rand({784, 10}), b = ts::zeros({10});
  ts::Tensor y = ts::softmax(ts::matmul(x, w) + b, {.axis = -1});     // recorded
  float v = y.item<float>({0, 3});                                    // computed

  ts::Tensor labels = ts::arange(64) % 10;
  ts::nn::Parameters p{{"w", w}, {"b", b}};
  ts::optim::OptimizerState state;
  for (int step = 0; step < 100; ++step) {
    const auto [loss, gradients] = ts::nn::loss_and_gradients(
        [&](const ts::nn::Parameters& q) { return ts::cross_entropy(ts::nn::linear(x, q.at("w"), q.at("b")), labels); }, p);
    ts::optim::adam(p, gradients, state, ts::optim::cosine_decay(1e-2, step, 100));
    ts::optim::eval(p, state);
  }
  // clang-format on

  const ts::Tensor after = ts::softmax(ts::matmul(x, p.at("w")) + p.at("b"), {.axis = -1});
  const float learned = after.item<float>({3, 3});
  std::printf("class 3 has the probability %g; picture 3 after training: %g\n", v, learned);
  return v > 0 && v < 1 && learned > 0.5F ? 0 : 1;
}
