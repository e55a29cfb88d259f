// What a subcommand of `tessera` is: a function that declares its options and says what to run.
//
// Exit codes, the same for every command: 0 yes or done, 1 no, 2 error.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <functional>
#include <string>

#include "tessera/base/result.h"

namespace tessera::cli {

enum class Answer : int { yes = 0, no = 1 };

/// A check of an option: a number that is neither negative nor NaN nor infinite.
inline const CLI::Validator finite_number(
    [](const std::string& text) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      const bool ok = !text.empty() && *end == 0 && value >= 0 && value <= 1e18;
      return ok ? std::string() : "expected a number from 0 to 1e18, got '" + text + "'";
    },
    "NUMBER");

/// The commands of the program. Each add_* function below adds one.
class Commands {
 public:
  explicit Commands(CLI::App& app) : app_(app) {}

  /// Declares a command. `examples` is shown below its help.
  CLI::App& add(const std::string& name, const std::string& description, const std::string& examples,
                std::function<Result<Answer>()> run);

  /// Runs the command that was given on the command line.
  [[nodiscard]] Result<Answer> run() const { return chosen_(); }

 private:
  CLI::App& app_;
  std::function<Result<Answer>()> chosen_;
};

void add_bench(Commands& commands);
void add_calibrate(Commands& commands);
void add_compile(Commands& commands);
void add_demo(Commands& commands);
void add_devices(Commands& commands);
void add_diff(Commands& commands);
void add_equal(Commands& commands);
void add_explain(Commands& commands);
void add_hash(Commands& commands);
void add_hot(Commands& commands);
void add_inspect(Commands& commands);
void add_onnx_test(Commands& commands);
void add_ops(Commands& commands);
void add_print(Commands& commands);
void add_run(Commands& commands);
void add_signature(Commands& commands);
void add_tile(Commands& commands);
void add_validate(Commands& commands);

}  // namespace tessera::cli
