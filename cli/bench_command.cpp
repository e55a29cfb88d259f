#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr std::string_view prefix = "tessera_bench_";

/// The folder of the benchmark programs: bench/ beside this program.
Result<std::string> bench_folder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return Error(ErrorCode::io, cat("cannot find this program: ", std::strerror(errno)));
  const std::string_view self(path, static_cast<std::size_t>(length));
  return cat(self.substr(0, self.rfind('/')), "/bench/");
}

std::vector<std::string> suites_in(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), &closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name.substr(0, prefix.size()) == prefix) out.emplace_back(name.substr(prefix.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<Answer> run_suite(const std::string& suite, const std::vector<std::string>& arguments) {
  const std::string folder = TESSERA_TRY(bench_folder());
  const auto suites = suites_in(folder);
  if (suite.empty()) {
    std::printf("suites: %s\n", join(suites, " ").c_str());
    return Answer::yes;
  }
  if (std::find(suites.begin(), suites.end(), suite) == suites.end())
    return Error(ErrorCode::not_found,
                 cat("no benchmark suite '", printable(suite), "'; there are: ", join(suites, " ")));
  const std::string program = cat(folder, prefix, suite);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), argv.data());
  return Error(ErrorCode::io, cat("cannot run ", program, ": ", std::strerror(errno)));
}

}  // namespace

void tessera::cli::add_bench(Commands& commands) {
  struct Options {
    std::string suite;
    std::vector<std::string> arguments;
  };
  auto options = std::make_shared<Options>();
  CLI::App& command = commands.add("bench", "run a benchmark suite",
                                   "  tessera bench                                    list the suites\n"
                                   "  tessera bench ir\n"
                                   "  tessera bench ir --benchmark_filter=hash --benchmark_format=json",
                                   [options] { return run_suite(options->suite, options->arguments); });
  command.add_option("SUITE", options->suite, "the suite; without it, the list");
  command.add_option("ARGS", options->arguments, "handed to the suite as they are")->allow_extra_args();
  command.positionals_at_end();
  command.prefix_command();
}
