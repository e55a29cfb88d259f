// The handwritten digits of MNIST: a network with one hidden layer, trained on 60,000 and asked about 10,000
// others. Usage, after tools/fetch-models: mnist [MODELS]
#include <tessera/tessera.h>

#include <cstdio>
#include <fstream>
#include <vector>

namespace ts = tessera;

namespace {

constexpr std::int64_t pixels = 28 * 28;

/// The bytes of a file behind its head.
std::vector<std::uint8_t> read_bytes(const std::string& path, std::size_t head) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> all((std::istreambuf_iterator<char>(file)), {});
  if (all.size() <= head) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(head), all.end()};
}

struct Digits {
  ts::Tensor images, labels;
  std::int64_t count = 0;
};

Digits read(const std::string& folder, const std::string& name) {
  const auto images = read_bytes(folder + name + "-images-idx3-ubyte", 16);
  const auto labels = read_bytes(folder + name + "-labels-idx1-ubyte", 8);
  const auto count = static_cast<std::int64_t>(labels.size());
  if (count == 0 || static_cast<std::int64_t>(images.size()) != count * pixels) return {};
  const ts::Tensor bytes = ts::from_vector(images, {count, pixels});
  return {(bytes.cast(ts::f32) / 255.0).eval(), ts::from_vector(labels, {count}).cast(ts::i64).eval(), count};
}

ts::Tensor scores(const ts::nn::Parameters& p, const ts::Tensor& x) {
  return ts::nn::linear(ts::relu(ts::nn::linear(x, p.at("w1"), p.at("b1"))), p.at("w2"), p.at("b2"));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string models = argc > 1 ? argv[1] : "models";
  const Digits train = read(models + "/mnist/data/", "train"), test = read(models + "/mnist/data/", "t10k");
  if (train.count == 0 || test.count == 0)
    return std::fprintf(stderr, "no digits in %s: run tools/fetch-models\n", models.c_str()), 2;

  ts::set_seed(1);
  constexpr std::int64_t hidden = 64, batch = 100, epochs = 2;
  ts::nn::Parameters p{{"w1", ts::nn::glorot_uniform(pixels, hidden)},
                       {"b1", ts::zeros({hidden})},
                       {"w2", ts::nn::glorot_uniform(hidden, 10)},
                       {"b2", ts::zeros({10})}};
  ts::optim::OptimizerState state;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const ts::Tensor order = ts::sort(ts::rand({train.count})).indices.eval();
    for (std::int64_t at = 0; at < train.count; at += batch) {
      const ts::Tensor part = order.slice({{at, at + batch}});
      const ts::Tensor x = ts::gather(train.images, part), labels = ts::gather(train.labels, part);
      const auto [loss, gradients] = ts::nn::loss_and_gradients(
          [&](const ts::nn::Parameters& q) { return ts::cross_entropy(scores(q, x), labels); }, p);
      ts::optim::adam(p, gradients, state, epoch == 0 ? 2e-3 : 5e-4);
      ts::optim::eval(p, state);
      if (at % 15000 == 0)
        std::printf("epoch %d, digit %d\n", static_cast<int>(epoch + 1), static_cast<int>(at));
    }
  }

  const ts::Tensor right = ts::argmax(scores(p, test.images), {.axis = 1}) == test.labels;
  const auto known = ts::sum(right.cast(ts::i64)).item<std::int64_t>();
  std::printf("%d of %d digits are known\n", static_cast<int>(known), static_cast<int>(test.count));
  return 100 * known >= 95 * test.count ? 0 : 1;
}
