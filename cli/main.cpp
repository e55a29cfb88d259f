// The program `tessera`.
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr int exit_error = 2;

int report(const Error& error) {
  std::fprintf(stderr, "tessera: %s\n", error.to_text().c_str());
  return exit_error;
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
  add_tile(commands);
  add_inspect(commands);
  add_run(commands);
  add_diff(commands);
  add_onnx_test(commands);
  add_bench(commands);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : exit_error;  // CLI11 has its own numbers; ours has one for errors
  }
  auto answer = commands.run();
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
