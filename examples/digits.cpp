// A classifier of handwritten digits in one page. `tessera demo` is the same with a progress bar, pictures
// and checkpoints. Usage: digits DATA, which is examples/data/digits.txt.
#include <tessera/tessera.h>

#include <cstdio>
#include <fstream>

namespace ts = tessera;

namespace {

struct Digits {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  [[nodiscard]] ts::Tensor images() const { return ts::from_vector(pixels, {count(), 64}); }
  [[nodiscard]] ts::Tensor classes() const { return ts::from_vector(labels, {count()}); }
};

/// Every fifth digit goes into `held_out`.
void read(const char* path, Digits& train, Digits& held_out) {
  std::ifstream file(path);
  std::string pixels;
  int label = 0;
  for (int i = 0; file >> label >> pixels; ++i) {
    Digits& to = i % 5 == 4 ? held_out : train;
    to.labels.push_back(label);
    for (const char c : pixels)
      to.pixels.push_back(static_cast<float>(c <= '9' ? c - '0' : c - 'a' + 10) / 16);
  }
}

ts::Tensor scores(const ts::nn::Parameters& p, const ts::Tensor& x) {
  const ts::Tensor hidden = ts::relu(ts::nn::linear(x, p.at("w1"), p.at("b1")));
  return ts::nn::linear(hidden, p.at("w2"), p.at("b2"));
}

}  // namespace

int main(int argc, char** argv) {
  Digits train, held_out;
  if (argc == 2) read(argv[1], train, held_out);
  if (train.count() == 0) return std::fprintf(stderr, "usage: digits examples/data/digits.txt\n"), 2;
  const ts::Tensor images = train.images(), classes = train.classes();

  ts::set_seed(1);
  ts::nn::Parameters p{{"w1", ts::nn::glorot_uniform(64, 64)},
                       {"b1", ts::zeros({64})},
                       {"w2", ts::nn::glorot_uniform(64, 10)},
                       {"b2", ts::zeros({10})}};
  ts::optim::OptimizerState state;
  constexpr std::int64_t epochs = 15, batch = 32;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const ts::Tensor order = ts::sort(ts::rand({train.count()})).indices;
    for (std::int64_t at = 0; at < train.count(); at += batch) {
      const ts::Tensor part = order.slice({{at, std::min(at + batch, train.count())}});
      const auto [loss, gradients] = ts::nn::loss_and_gradients(
          [&](const ts::nn::Parameters& q) {
            return ts::cross_entropy(scores(q, ts::gather(images, part)), ts::gather(classes, part));
          },
          p);
      ts::optim::adam(p, gradients, state, ts::optim::exponential_decay(0.008, epoch, 0.8));
      ts::optim::eval(p, state);
    }
    std::printf("epoch %lld done\n", static_cast<long long>(epoch + 1));
  }

  const ts::Tensor right = ts::argmax(scores(p, held_out.images()), {.axis = 1}) == held_out.classes();
  const float accuracy = ts::mean(right.cast(ts::f32)).item<float>();
  std::printf("held-out accuracy %s 95 %%: %.1f %%\n", accuracy >= 0.95F ? "above" : "below", 100 * accuracy);
  return accuracy >= 0.95F ? 0 : 1;
}
