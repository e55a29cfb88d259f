// The handwritten digits of the demo, which are part of the program, and the classifier that learns them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/nn/training_state.h"
#include "tessera/tensor/tensor.h"

namespace tessera::cli {

/// Written at build time from examples/data/digits.txt: "LABEL PIXELS" each.
extern const std::span<const char* const> digit_lines;

inline constexpr std::int64_t digit_side = 8, digit_pixels = 64, digit_classes = 10;

struct Digits {
  Tensor pixels;  ///< [count, 64], from 0 to 1
  Tensor labels;  ///< [count], i64
};
/// Every fifth digit is held out: nothing is learned from it.
struct DigitData {
  Digits train, held_out;
};
[[nodiscard]] DigitData load_digits();

/// First weights of a network with one hidden layer. They depend on the seed of the engine.
[[nodiscard]] nn::Parameters first_digit_weights();

enum class Use : std::uint8_t { training, guessing };
/// One number per class: [count, 10].
[[nodiscard]] Tensor digit_scores(const nn::Parameters& parameters, const Tensor& pixels, Use use);

struct DigitGuesses {
  std::vector<std::int64_t> classes, labels;
  std::vector<float> confidence;
  [[nodiscard]] double accuracy() const;
};
[[nodiscard]] DigitGuesses guess(const nn::Parameters& parameters, const Digits& digits);

/// A digit as 8 lines of 16 characters.
[[nodiscard]] std::vector<std::string> picture(const Digits& digits, std::size_t index);

}  // namespace tessera::cli
