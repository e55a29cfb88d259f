// The program `tessera`.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <numeric>
#include <utility>

#include "cli/command.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr int exit_error = 2;

int report(const Error& error) {
  std::fprintf(stderr, "tessera: %s\n", error.to_text().c_str());
  return exit_error;
}

/// Whether everything that was printed has arrived, by the library of C and by that of C++.
bool is_output_written() {
  std::cout.flush();
  return std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

/// The exit code for what CLI11 has shown, help or an error: it has numbers of its own, we have one.
int finished(int shown) {
  if (!is_output_written()) return report(Error(ErrorCode::io, "cannot write to standard output"));
  return shown == 0 ? 0 : exit_error;
}

/// How many letters are to be put in, left out or changed to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

/// What to say where no command was given, or one that there is not. The nearest ones, or else all of them.
Error wrong_command(const CLI::App& app, std::string_view given, std::string_view first) {
  if (first.size() > 1 && first.front() == '-')
    return Error(ErrorCode::invalid_argument, cat("unknown option '", printable(shortened(first, 40)),
                                                  "'; `tessera --help` lists what there is"));
  std::vector<std::string> all, near;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back(command->get_name());
    const bool begins = !given.empty() && all.back().starts_with(given);
    if (begins || distance(given, all.back()) <= 1 + given.size() / 4) near.push_back(all.back());
  }
  if (given.empty()) return Error(ErrorCode::invalid_argument, cat("expected a command: ", join(all, ", ")));
  Error error(ErrorCode::invalid_argument, cat("unknown command '", printable(shortened(given, 40)), "'; ",
                                               near.empty() ? cat("the commands are ", join(all, ", "))
                                                            : cat("did you mean ", join(near, " or "), "?")));
  return error;
}

/// What to say of an argument that a command does not take.
Error unknown_argument(const CLI::App& command, std::string_view given) {
  const bool is_option = given.size() > 1 && given.front() == '-';
  return Error(ErrorCode::invalid_argument,
               cat(command.get_name(), is_option ? ": unknown option '" : ": unexpected argument '",
                   printable(shortened(given, 40)), "'; `tessera ", command.get_name(),
                   " --help` lists what there is"));
}

/// The first argument that is no option, empty if there is none.
std::string_view first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] != '-') return argv[i];
  return {};
}

int run(int argc, char** argv) {
  CLI::App app("Tessera: a lazy tensor engine with a graph compiler");
  app.name("tessera");
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 yes or done, 1 no, 2 error. `tessera COMMAND --help` shows examples.");

  Commands commands(app);
  add_demo(commands);
  add_print(commands);
  add_equal(commands);
  add_hash(commands);
  add_signature(commands);
  add_hot(commands);
  add_ops(commands);
  add_devices(commands);
  add_tile(commands);
  add_compile(commands);
  add_explain(commands);
  add_validate(commands);
  add_inspect(commands);
  add_run(commands);
  add_diff(commands);
  add_onnx_test(commands);
  add_bench(commands);
  add_calibrate(commands);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& e) {
    if (app.get_subcommands().empty())
      return report(wrong_command(app, first_word(argc, argv), argc > 1 ? argv[1] : ""));
    const CLI::App& command = *app.get_subcommands().front();
    // What is missing may be missing because an option is misspelt: that is what to say first.
    if (const auto unknown = command.remaining(); !unknown.empty())
      return report(unknown_argument(command, unknown.front()));
    return finished(app.exit(e));
  } catch (const CLI::ExtrasError& e) {
    if (app.get_subcommands().empty()) return finished(app.exit(e));
    const CLI::App& command = *app.get_subcommands().front();
    const auto unknown = command.remaining();
    return unknown.empty() ? (app.exit(e), exit_error) : report(unknown_argument(command, unknown.front()));
  } catch (const CLI::ParseError& e) {
    return finished(app.exit(e));
  }
  auto answer = commands.run();
  if (!is_output_written()) return report(Error(ErrorCode::io, "cannot write to standard output"));
  return answer ? static_cast<int>(*answer) : report(answer.error());
}

}  // namespace

CLI::App& Commands::add(const std::string& name, const std::string& description, const std::string& examples,
                        std::function<Result<Answer>()> run) {
  CLI::App* command = app_.add_subcommand(name, description);
  command->footer("Examples:\n" + examples);
  command->callback([this, run = std::move(run)] { chosen_ = run; });
  return *command;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Exception& e) {
    return report(e.error());
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorCode::memory, "out of memory"));
  } catch (const std::exception& e) {
    return report(Error(ErrorCode::internal, e.what()));
  }
}
