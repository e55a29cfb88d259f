#include <cstdio>
#include <filesystem>
#include <regex>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/program_file.h"
#include "cli/progress.h"
#include "tessera/base/json.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/onnx/conformance.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct OnnxTestOptions {
  std::vector<std::string> folders;
  std::string filter;
  std::string skips;
  std::string device;
  bool json = false;
  bool quiet = false;
};

struct Totals {
  int passed = 0, failed = 0, skipped = 0;
};

std::string_view word(onnx::TestOutcome::Kind kind) {
  constexpr std::string_view words[] = {"passed", "failed", "skipped"};
  return words[static_cast<std::size_t>(kind)];
}

void count(Totals& totals, onnx::TestOutcome::Kind kind) {
  int* const counters[] = {&totals.passed, &totals.failed, &totals.skipped};
  ++*counters[static_cast<std::size_t>(kind)];
}

Result<std::vector<std::string>> chosen_tests(const OnnxTestOptions& options) {
  std::vector<std::string> out;
  try {
    const std::regex filter(options.filter);
    for (const std::string& folder : options.folders)
      for (const std::string& test : TESSERA_TRY(onnx::find_tests(folder)))
        if (options.filter.empty() || std::regex_search(test, filter)) out.push_back(test);
  } catch (const std::regex_error& e) {
    return Error(ErrorCode::invalid_argument, cat("--filter ", quote(options.filter), ": ", e.what()));
  }
  return out;
}

/// One test; a test in the list that does not pass is skipped for the reason that is given there.
onnx::TestOutcome outcome_of(const std::string& folder, const std::string& name, const onnx::RunOptions& how,
                             const onnx::Skips& skips) {
  using Kind = onnx::TestOutcome::Kind;
  onnx::TestOutcome out = onnx::run_test(folder, how);
  const auto skip = skips.find(name);
  if (skip == skips.end()) return out;
  if (out.kind == Kind::passed) return {Kind::failed, "passes, and is in the list of skips", false};
  return {Kind::unsupported, skip->second, false};
}

/// By plans, or by the reference where there can be none.
Result<std::vector<op::HostTensor>> run_planned(const ir::FunctionRef& function,
                                                std::span<const op::HostTensor> inputs,
                                                runtime::Device& device) {
  auto planned = compiler::plan_program(function, device.target());
  if (!planned && planned.error().code() == ErrorCode::unsupported) return op::interpret(*function, inputs);
  if (!planned) return std::move(planned).error();
  auto runner = TESSERA_TRY(engine::PlanRunner::create(
      compiler::package(*function, {std::move(planned->program)}, std::string(device.name())), device));
  return runner.run(inputs);
}

Result<Answer> run_tests(const OnnxTestOptions& options) {
  Totals totals;
  const auto device = TESSERA_TRY(chosen_device(options.device));
  onnx::RunOptions how;
  how.call = [&](const op::CallInfo& call, auto in, auto out) { return device->run(call, in, out); };
  if (device->name() != "reference")
    how.function = [&](const ir::FunctionRef& function, std::span<const op::HostTensor> inputs) {
      return run_planned(function, inputs, *device);
    };
  onnx::Skips skips;
  if (!options.skips.empty())
    skips = TESSERA_TRY(onnx::read_skips(TESSERA_TRY(read_text(options.skips)), shown(options.skips)));
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("tests").begin_array();
  const auto tests = TESSERA_TRY(chosen_tests(options));
  if (tests.empty()) return Error(ErrorCode::not_found, "no test was found");
  Progress progress(stderr);
  for (const std::string& test : tests) {
    const std::string name = std::filesystem::path(test).filename().string();
    const int done = totals.passed + totals.failed + totals.skipped;
    if (!options.quiet)
      progress.draw(static_cast<double>(done) / static_cast<double>(tests.size()), printable(name));
    const onnx::TestOutcome outcome = outcome_of(test, name, how, skips);
    count(totals, outcome.kind);
    json.begin_object().member("name", name).member("outcome", word(outcome.kind));
    json.member("message", outcome.message).end_object();
    if (options.json || options.quiet || outcome.kind == onnx::TestOutcome::Kind::passed) continue;
    progress.clear();
    std::printf("%s %s: %s\n", std::string(word(outcome.kind)).c_str(), printable(name).c_str(),
                outcome.message.c_str());
  }
  progress.clear();
  json.end_array().member("passed", totals.passed).member("failed", totals.failed);
  json.member("skipped", totals.skipped).end_object();
  if (options.json)
    std::printf("%s\n", json.text().c_str());
  else
    std::printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 ? Answer::yes : Answer::no;
}

}  // namespace

void tessera::cli::add_onnx_test(Commands& commands) {
  auto options = std::make_shared<OnnxTestOptions>();
  CLI::App& command =
      commands.add("onnx-test", "run tests in the layout of the ONNX backend tests",
                   "  tessera onnx-test /usr/share/libonnx-testdata/data/node\n"
                   "  tessera onnx-test --skips tests/onnx/skips.txt /usr/share/libonnx-testdata/data/node\n"
                   "  tessera onnx-test --filter conv --json /usr/share/libonnx-testdata/data/node",
                   [options] { return run_tests(*options); });
  command.add_option("DIR", options->folders, "folders with tests, at any depth")->required();
  command.add_option("--filter", options->filter,
                     "run only tests whose path matches this regular expression");
  command.add_option("--skips", options->skips,
                     "a file of lines 'test: reason': these count as skipped when they do not pass");
  command.add_option("--device", options->device, device_option_text(""));
  command.add_flag("--json", options->json, "print all outcomes as JSON");
  command.add_flag("--quiet", options->quiet, "print the totals only");
}
