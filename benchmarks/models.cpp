#include "benchmarks/models.h"

#include <cmath>

using namespace tessera;
using namespace tessera::benchmarks;

namespace {

class NoTiles final : public pattern::TileSource {
 public:
  [[nodiscard]] std::string name() const override { return "none"; }
  [[nodiscard]] Result<void> list(const pattern::Graph&, pattern::CandidateList&) const override {
    return {};
  }
  void describe(const pattern::Graph&, const pattern::CandidateList&, std::size_t,
                pattern::Tile&) const override {}
  [[nodiscard]] std::string name_of(const pattern::CandidateList&, std::size_t) const override { return ""; }
};

}  // namespace

Tensor Inputs::operator()(Shape shape, compare::Spread spread) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return from_vector(compare::numbers(count, ++seed_, spread), std::move(shape), {.engine = engine_});
}

Tensor Inputs::weight(std::int64_t in, std::int64_t out) {
  return (*this)({in, out}, {.scale = 1.0 / std::sqrt(static_cast<double>(in))});
}

Tensor tessera::benchmarks::mlp(const nn::Parameters& p, const Tensor& x) {
  const Tensor first = relu(nn::linear(x, p.at("w0"), p.at("b0")));
  return nn::linear(relu(nn::linear(first, p.at("w1"), p.at("b1"))), p.at("w2"), p.at("b2"));
}

nn::Parameters tessera::benchmarks::mlp_parameters(Inputs& in, MlpWidths of) {
  const std::int64_t widths[] = {of.in, of.hidden, of.hidden, of.out};
  nn::Parameters out;
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    out.emplace("w" + number, in.weight(widths[i], widths[i + 1]));
    out.emplace("b" + number, in.bias(widths[i + 1]));
  }
  return out;
}

Tensor tessera::benchmarks::block(const nn::Parameters& p, const Tensor& x, std::int64_t heads) {
  const nn::SelfAttention attention{p.at("in_w"), p.at("in_b"), p.at("out_w"), p.at("out_b")};
  const Tensor seen =
      x + nn::self_attention(layer_norm(x, p.at("n0_w"), p.at("n0_b")), attention, {.heads = heads});
  const Tensor wide =
      gelu(nn::linear(layer_norm(seen, p.at("n1_w"), p.at("n1_b")), p.at("up_w"), p.at("up_b")));
  return seen + nn::linear(wide, p.at("down_w"), p.at("down_b"));
}

nn::Parameters tessera::benchmarks::block_parameters(Inputs& in, std::int64_t width) {
  nn::Parameters out;
  const auto norm = [&](const std::string& name) {
    out.emplace(name + "_w", in({width}, {.scale = 0.1, .offset = 1.0}));
    out.emplace(name + "_b", in.bias(width));
  };
  const auto linear = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    out.emplace(name + "_w", in.weight(from, to));
    out.emplace(name + "_b", in.bias(to));
  };
  norm("n0");
  linear("in", width, 3 * width);
  linear("out", width, width);
  norm("n1");
  linear("up", width, 4 * width);
  linear("down", 4 * width, width);
  return out;
}

Tensor tessera::benchmarks::chain_of_adds(Tensor x, const Tensor& y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x = x + y;
  return x;
}

nn::Loss tessera::benchmarks::mlp_loss(Inputs& in, std::int64_t batch, MlpWidths widths) {
  const Tensor x = in({batch, widths.in});
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < batch; ++i) classes.push_back(i % 10);
  const Tensor labels = from_vector(classes, {batch}, {.engine = in.engine()});
  return [=](const nn::Parameters& p) { return cross_entropy(mlp(p, x), labels); };
}

Tensor tessera::benchmarks::training_step(nn::Parameters& p, const nn::Loss& loss) {
  auto [value, gradients] = nn::loss_and_gradients(loss, p);
  optim::OptimizerState state;
  optim::sgd(p, gradients, state, 1e-3);
  nn::eval(p);
  return value;
}

std::shared_ptr<const pattern::TileSource> tessera::benchmarks::no_tiles() {
  return std::make_shared<NoTiles>();
}
