// Compiled functions: a training step with its state, on batches of several sizes, and a filter whose state
// goes from call to call. What a function reads outside may change: it is read at every call.
#include <tessera/tessera.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

namespace ts = tessera;

namespace {

struct Training {
  ts::nn::Parameters weights;
  ts::optim::OptimizerState adam;
  static constexpr auto fields() {
    return std::tuple{ts::field("weights", &Training::weights), ts::field("adam", &Training::adam)};
  }
};

ts::Tensor network(const ts::nn::Parameters& p, const ts::Tensor& x) {
  return ts::nn::linear(ts::tanh(ts::nn::linear(x, p.at("w1"), p.at("b1"))), p.at("w2"), p.at("b2"));
}

/// One step; only rows whose mask is 1 count.
std::pair<ts::Tensor, Training> train(Training state, const ts::Tensor& x, const ts::Tensor& y,
                                      const std::optional<ts::Tensor>& mask, double rate) {
  const auto [loss, gradients] = ts::nn::loss_and_gradients(
      [&](const ts::nn::Parameters& p) {
        const ts::Tensor off = ts::square(network(p, x) - y);
        return mask ? ts::sum(off * *mask) / ts::sum(*mask) : ts::mean(off);
      },
      state.weights);
  ts::optim::adam(state.weights, gradients, state.adam, rate);
  return {loss, state};
}

}  // namespace

int main() {
  ts::set_seed(1);
  Training state{.weights = {{"w1", ts::randn({1, 16})},
                             {"b1", ts::zeros({16})},
                             {"w2", ts::randn({16, 1}) * 0.25},
                             {"b2", ts::zeros({1})}}};
  const auto step = ts::compile(train);
  float last = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t rows = 32 + i % 8;
    const ts::Tensor x = ts::rand({rows, 1}) * 4 - 2, y = ts::sin(x);
    const auto mask = i % 2 == 0 ? std::optional(ts::ones({rows, 1})) : std::nullopt;
    const double rate = ts::optim::cosine_decay(1e-2, i, 400);
    auto [loss, next] = step(state, x, y, mask, rate);
    ts::eval(std::tie(loss, next));
    state = next;
    last = loss.item<float>();
  }
  std::printf("sin(1) is %.2f, plans: %llu\n", network(state.weights, ts::ones({1, 1})).item<float>({0, 0}),
              static_cast<unsigned long long>(ts::stats().plans_made));

  ts::Tensor gain = ts::full({2}, 0.5);
  const auto filter = ts::compile(
      [&](const ts::Tensor& held, const ts::Tensor& sample) { return held + gain * (sample - held); });
  ts::Tensor held = ts::zeros({2});
  for (int i = 0; i < 8; ++i) {
    if (i == 4) gain.fill(1);  // from now on nothing of the past is kept
    held = filter(held, static_cast<float>(i)).eval();
  }
  std::printf("held %.0f\n", held.item<float>({0}));
  return last < 0.01 && held.item<float>({0}) == 7 ? 0 : 1;
}
