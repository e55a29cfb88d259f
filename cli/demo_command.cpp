#include "cli/command.h"
#include "cli/demo.h"

using namespace tessera;
using namespace tessera::cli;

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
  command.add_option("--seed", options->training.seed, "of first weights, order and dropout; 0 if not given");
  command.add_option("--checkpoint", options->training.checkpoint,
                     "a file that keeps the training, and is gone on from");
  command.add_flag("--json", options->json, "the result for a program, nothing else");
}
