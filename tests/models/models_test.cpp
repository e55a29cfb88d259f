// Loss and gradients of whole models against PyTorch: tools/dump-models wrote what it computed in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tessera.h"

using namespace tessera;
using nn::Parameters;

namespace {

/// Far below the 1e-5 that is asked for: both sides compute in f64, and differ in the order of sums only.
constexpr double tolerance = 1e-10;

struct Model {
  Parameters parameters, gradients, inputs;
  double loss = 0;
};

Model load(const std::string& name) {
  Model out;
  for (const auto& [key, value] :
       load_npz(std::string(TESSERA_SOURCE_DIR "/tests/data/models/") + name + ".npz")) {
    const auto slash = key.find('/');
    const std::string kind = key.substr(0, slash),
                      rest = slash == std::string::npos ? "" : key.substr(slash + 1);
    if (kind == "parameter") out.parameters[rest] = value;
    if (kind == "gradient") out.gradients[rest] = value;
    if (kind == "input") out.inputs[rest] = value;
    if (kind == "loss") out.loss = value.item<double>();
  }
  return out;
}

/// Relative to the largest element.
void expect_close(const std::string& name, const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape()) << name;
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(std::isfinite(a[i])) << name;
    largest = std::max(largest, std::abs(b[i]));
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  EXPECT_GT(largest, 0) << name;
  EXPECT_LE(worst, tolerance * largest) << name;
}

void expect_agreement(const std::string& name,
                      const std::function<Tensor(const Model&, const Parameters&)>& loss) {
  const Model model = load(name);
  ASSERT_FALSE(model.parameters.empty());
  ASSERT_EQ(model.parameters.size(), model.gradients.size());
  const auto found =
      nn::loss_and_gradients([&](const Parameters& p) { return loss(model, p); }, model.parameters);
  EXPECT_NEAR(found.loss.item<double>(), model.loss, tolerance * std::abs(model.loss));
  for (const auto& [key, gradient] : found.gradients) expect_close(key, gradient, model.gradients.at(key));
}

TEST(Models, an_mlp_agrees_with_pytorch) {
  expect_agreement("mlp", [](const Model& model, const Parameters& p) {
    const Tensor first = tanh(nn::linear(model.inputs.at("x"), p.at("0.weight"), p.at("0.bias")));
    const Tensor second = gelu(nn::linear(first, p.at("2.weight"), p.at("2.bias")));
    return cross_entropy(nn::linear(second, p.at("4.weight"), p.at("4.bias")), model.inputs.at("labels"));
  });
}

TEST(Models, a_convolutional_net_agrees_with_pytorch) {
  expect_agreement("conv_net", [](const Model& model, const Parameters& p) {
    const Tensor first = conv(model.inputs.at("x"), p.at("0.weight"), {}, {.pads = {1, 1, 1, 1}});
    const Tensor normed = relu(batch_norm_training(first, p.at("1.weight"), p.at("1.bias")).y);
    const Tensor pooled = max_pool(normed, {.kernel = {2, 2}, .strides = {2, 2}}).values;
    const Tensor second = silu(conv(pooled, p.at("4.weight"), p.at("4.bias"), {.strides = {2, 2}}));
    const Tensor flat = mean(second, {.axes = {2, 3}});
    return cross_entropy(nn::linear(flat, p.at("8.weight"), p.at("8.bias")), model.inputs.at("labels"));
  });
}

TEST(Models, a_transformer_block_agrees_with_pytorch) {
  expect_agreement("transformer_block", [](const Model& model, const Parameters& p) {
    const nn::SelfAttention weights{p.at("self_attn.in_proj_weight"), p.at("self_attn.in_proj_bias"),
                                    p.at("self_attn.out_proj.weight"), p.at("self_attn.out_proj.bias")};
    Tensor x = model.inputs.at("x");
    x = x + nn::self_attention(nn::layer_norm(x, p.at("norm1.weight"), p.at("norm1.bias")), weights,
                               {.heads = 2, .causal = true});
    const Tensor wide = gelu(nn::linear(nn::layer_norm(x, p.at("norm2.weight"), p.at("norm2.bias")),
                                        p.at("linear1.weight"), p.at("linear1.bias")));
    x = x + nn::linear(wide, p.at("linear2.weight"), p.at("linear2.bias"));
    return mean(square(x - model.inputs.at("target")));
  });
}

}  // namespace
