#include <charconv>

#include "cli/command.h"
#include "cli/demo.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

/// What CLI11 would silently cut to 64 bits, or take as negative and wrap. Empty if the text is fine.
std::string whole_number_of_64_bits(const std::string& text) {
  std::uint64_t value = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end) return {};
  return "expected a whole number from 0 to 18446744073709551615, got " + text;
}

}  // namespace

void tessera::cli::add_demo(Commands& commands) {
  struct Options {
    std::string what = "digits";
    TrainingOptions training;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App& command = commands.add(
      "demo", "train a classifier of handwritten digits, or show the IR",
      "  tessera demo\n"
      "  tessera demo --epochs 5 --seed 7\n"
      "  tessera demo --checkpoint digits.safetensors      kept there; goes on if the file is there\n"
      "  tessera demo ir",
      [options] {
        if (options->what == "ir") return show_ir();
        return train_digits(options->training, options->json ? Output::json : Output::text);
      });
  command.add_option("WHAT", options->what, "digits or ir")
      ->check(CLI::IsMember({"digits", "ir"}))
      ->capture_default_str();
  command.add_option("--epochs", options->training.epochs, "how often all digits are seen")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}))
      ->capture_default_str();
  command.add_option("--seed", options->training.seed, "of first weights, order and dropout; 0 if not given")
      ->check(whole_number_of_64_bits);
  command.add_option("--checkpoint", options->training.checkpoint,
                     "a file that keeps the training, and is gone on from");
  command.add_flag("--json", options->json, "the result for a program, nothing else");
}
