#include "cli/digits.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tessera/base/check.h"
#include "tessera/nn/layers.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr std::int64_t hidden = 96;

struct Values {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;

  void add(std::string_view line) {
    TESSERA_CHECK(line.size() == digit_pixels + 2, "a line of digits.txt has another length");
    labels.push_back(line[0] - '0');
    for (const char c : line.substr(2)) {
      const int level = c <= '9' ? c - '0' : c - 'a' + 10;
      pixels.push_back(static_cast<float>(level) / 16);
    }
  }

  [[nodiscard]] Digits tensors() const {
    const auto count = static_cast<std::int64_t>(labels.size());
    return {from_vector(pixels, {count, digit_pixels}), from_vector(labels, {count})};
  }
};

}  // namespace

DigitData tessera::cli::load_digits() {
  Values train, held_out;
  for (std::size_t i = 0; i < digit_lines.size(); ++i) (i % 5 == 4 ? held_out : train).add(digit_lines[i]);
  return {train.tensors(), held_out.tensors()};
}

nn::Parameters tessera::cli::first_digit_weights() {
  return {{"hidden.weight", nn::glorot_uniform(digit_pixels, hidden)},
          {"hidden.bias", zeros({hidden})},
          {"out.weight", nn::glorot_uniform(hidden, digit_classes)},
          {"out.bias", zeros({digit_classes})}};
}

Tensor tessera::cli::digit_scores(const nn::Parameters& p, const Tensor& pixels, Use use) {
  Tensor h = relu(nn::linear(pixels, p.at("hidden.weight"), p.at("hidden.bias")));
  if (use == Use::training) h = nn::dropout(h, {.rate = 0.3});
  return nn::linear(h, p.at("out.weight"), p.at("out.bias"));
}

DigitGuesses tessera::cli::guess(const nn::Parameters& parameters, const Digits& digits) {
  const Tensor chances = softmax(digit_scores(parameters, digits.pixels, Use::guessing), {.axis = 1});
  const Tensor best = argmax(chances, {.axis = 1}), confidence = max(chances, {.axes = {1}});
  eval({best, confidence});
  return {best.to_vector<std::int64_t>(), digits.labels.to_vector<std::int64_t>(),
          confidence.to_vector<float>()};
}

double DigitGuesses::accuracy() const {
  std::size_t right = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) right += classes[i] == labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(std::max<std::size_t>(1, classes.size()));
}

std::vector<std::string> tessera::cli::picture(const Digits& digits, std::size_t index) {
  constexpr std::string_view ramp = " .:-=+*#%@";
  const auto pixels = digits.pixels.data<float>().subspan(index * digit_pixels, digit_pixels);
  std::vector<std::string> lines(digit_side);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto level = static_cast<std::size_t>(std::lround(pixels[i] * static_cast<float>(ramp.size() - 1)));
    lines[i / digit_side].append(2, ramp[level]);  // a character is about twice as high as wide
  }
  return lines;
}
