// A small transformer that reads letters and learns to say what comes next. The text repeats, so that it can
// know all but the first letters: it then goes on with the text on its own.
#include <tessera/tessera.h>

#include <cstdio>
#include <string>

namespace ts = tessera;
using ts::Tensor;
using ts::nn::Parameters;

namespace {

const std::string text = "the tide comes in, the tide goes out. ";
constexpr std::int64_t length = 16, width = 24, heads = 2;

/// The letters of the text, each once: a letter is its place here.
std::string letters_of(const std::string& from) {
  std::string out;
  for (const char c : from)
    if (out.find(c) == std::string::npos) out += c;
  return out;
}

const std::string letters = letters_of(text);

std::vector<std::int64_t> numbers_of(const std::string& from) {
  std::vector<std::int64_t> out;
  for (const char c : from) out.push_back(static_cast<std::int64_t>(letters.find(c)));
  return out;
}

Parameters first_weights() {
  const auto count = static_cast<std::int64_t>(letters.size());
  using ts::nn::glorot_uniform;
  return {{"letters", ts::randn({count, width}) * 0.1},
          {"places", ts::randn({length, width}) * 0.1},
          {"attention.in", glorot_uniform(width, 3 * width)},
          {"attention.out", glorot_uniform(width, width)},
          {"norm1", ts::ones({width})},
          {"norm2", ts::ones({width})},
          {"mlp.in", glorot_uniform(width, 2 * width)},
          {"mlp.out", glorot_uniform(2 * width, width)},
          {"head", glorot_uniform(width, count)}};
}

/// For each place of each text [batch, length], what comes next: [batch, length, letters].
Tensor scores(const Parameters& p, const Tensor& numbers) {
  Tensor x = ts::nn::embedding(p.at("letters"), numbers) + p.at("places");
  const ts::nn::SelfAttention weights{p.at("attention.in"), {}, p.at("attention.out"), {}};
  x = x + ts::nn::self_attention(ts::layer_norm(x, p.at("norm1")), weights, {.heads = heads, .causal = true});
  x = x + ts::nn::linear(ts::gelu(ts::nn::linear(ts::layer_norm(x, p.at("norm2")), p.at("mlp.in"))),
                         p.at("mlp.out"));
  return ts::nn::linear(x, p.at("head"));
}

/// Pieces of the repeated text, one from each of its places, and the same one letter later.
std::pair<Tensor, Tensor> pieces() {
  std::vector<std::int64_t> now, next;
  const auto numbers = numbers_of(text + text);
  const auto count = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < count; ++i) {
    now.insert(now.end(), numbers.begin() + i, numbers.begin() + i + length);
    next.insert(next.end(), numbers.begin() + i + 1, numbers.begin() + i + 1 + length);
  }
  return {ts::from_vector(now, {count, length}), ts::from_vector(next, {count * length})};
}

/// Goes on after `begin`, which is as long as the model sees, letter by letter.
std::string go_on(const Parameters& p, std::string begin, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto seen = numbers_of(begin.substr(begin.size() - length));
    const Tensor last = scores(p, ts::from_vector(seen, {1, length}))[0][length - 1];
    begin += letters[static_cast<std::size_t>(ts::argmax(last).item<std::int64_t>())];
  }
  return begin.substr(length);
}

}  // namespace

int main() {
  ts::set_seed(2);
  Parameters p = first_weights();
  ts::optim::OptimizerState state;
  const auto [now, next] = pieces();
  constexpr int steps = 60;
  for (int step = 0; step < steps; ++step) {
    auto found = ts::nn::loss_and_gradients(
        [&, &now = now, &next = next](const Parameters& q) {
          return ts::cross_entropy(scores(q, now).reshape({next.size(), -1}), next);
        },
        p);
    ts::optim::clip_by_norm(found.gradients, 1);
    const double rate = ts::optim::cosine_decay(0.02, step, steps, 0.001);
    ts::optim::adamw(p, found.gradients, state, ts::optim::warm_up(rate, step, 5));
    ts::optim::eval(p, state);
    if (step % 20 == 0) std::printf("step %2d  loss %.3f\n", step, found.loss.item<float>());
  }
  const std::string expected = (text + text).substr(length, text.size());
  const std::string said = go_on(p, text.substr(0, length), text.size());
  std::printf("after '%s' it says '%s'\n", text.substr(0, length).c_str(), said.c_str());
  return said == expected ? 0 : 1;
}
