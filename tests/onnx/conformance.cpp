// Runs the ONNX project's own backend tests (Debian: libonnx-testdata) and compares the outcome with the list
// of those that are known not to pass: a test outside the list that fails, and one in it that passes, are
// both failures. Prints a table by reason, the same that docs/onnx.md has.
//
//   conformance DATA SKIPS DOCS [--update]     --update writes the table into DOCS
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/model/onnx_model.h"
#include "tessera/model/tensor_target.h"
#include "tessera/onnx/conformance.h"

using namespace tessera;

namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Report {
  int tests = 0, passed = 0, as_functions = 0, as_tensors = 0, wrong = 0;
  std::map<std::string, std::vector<std::string>> skipped;  ///< by reason
};

/// Whether inputs and outputs are tensors and no default is replaced: what load_onnx is for.
bool is_of_tensors(const onnx::Model& model, const onnx::DataSet& set) {
  const auto is_tensor = [](const onnx::DataValue& value) {
    return value.kind == onnx::DataValue::Kind::tensor;
  };
  return set.inputs.size() == onnx::required_inputs(model).size() &&
         std::all_of(set.inputs.begin(), set.inputs.end(), is_tensor) &&
         std::all_of(set.outputs.begin(), set.outputs.end(), is_tensor);
}

/// Calls a model that passed its test with lazy tensors; why that is wrong, or nothing.
std::string run_lazily(const std::string& folder, bool& ran) {
  const std::string path = folder + "/model.onnx";
  const onnx::Model model = value_or_throw(onnx::read_model(path));
  const OnnxModel called = load_onnx(path);
  for (const onnx::DataSet& set : value_or_throw(onnx::read_data_sets(model, folder))) {
    if (!is_of_tensors(model, set)) return {};
    std::vector<Tensor> inputs;
    for (const onnx::DataValue& value : set.inputs)
      inputs.push_back(tensor_of(value.tensors[0], engine::Engine::default_engine()));
    std::vector<onnx::DataValue> got;
    for (const Tensor& output : called(inputs))
      got.push_back({onnx::DataValue::Kind::tensor, {elements_of(output)}});
    if (const std::string why = onnx::difference(got, set.outputs); !why.empty()) return why;
    ran = true;
  }
  return {};
}

/// The same, with what is thrown as an answer.
std::string wrong_with_tensors(const std::string& folder, bool& ran) {
  try {
    return run_lazily(folder, ran);
  } catch (const Exception& exception) {
    return exception.error().to_text();
  }
}

void run_one(const std::string& folder, const onnx::Skips& skips, Report& report) {
  const std::string name = std::filesystem::path(folder).filename().string();
  const onnx::TestOutcome outcome = onnx::run_test(folder);
  const bool is_passed = outcome.kind == onnx::TestOutcome::Kind::passed;
  const auto skip = skips.find(name);
  ++report.tests;
  report.passed += is_passed ? 1 : 0;
  report.as_functions += outcome.ran_as_function ? 1 : 0;
  if (skip != skips.end()) report.skipped[skip->second].push_back(name);
  if (is_passed) {
    bool ran = false;
    const std::string why = wrong_with_tensors(folder, ran);
    report.as_tensors += ran ? 1 : 0;
    report.wrong += why.empty() ? 0 : 1;
    if (!why.empty()) std::printf("%s: as tensors: %s\n", name.c_str(), why.c_str());
  }
  if (is_passed == (skip == skips.end())) return;
  ++report.wrong;
  std::printf("%s: %s\n", name.c_str(),
              is_passed ? "passes, and is in the list of skips" : outcome.message.c_str());
}

std::string table_of(const Report& report) {
  std::string out = cat("| | tests |\n| --- | --- |\n| passed | ", report.passed, " of ", report.tests,
                        " |\n| of these also as one IR function | ", report.as_functions,
                        " |\n| and with lazy tensors | ", report.as_tensors, " |\n\n");
  out += "| why a test is skipped | tests | which |\n| --- | --- | --- |\n";
  for (const auto& [reason, tests] : report.skipped) {
    std::vector<std::string> names;
    for (const std::string& test : tests) names.push_back(cat("`", test, "`"));
    out += cat("| ", reason, " | ", tests.size(), " | ", join(names, ", "), " |\n");
  }
  return out;
}

constexpr std::string_view begin_mark = "<!-- conformance -->\n", end_mark = "<!-- end -->\n";

/// The page with the table between its marks; empty if it has no marks.
std::string with_table(const std::string& page, const std::string& table) {
  const std::size_t begin = page.find(begin_mark), end = page.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return cat(page.substr(0, begin + begin_mark.size()), table, page.substr(end));
}

int finish(const Report& report, const std::string& docs, bool is_update) {
  const std::string table = table_of(report), page = read(docs), wanted = with_table(page, table);
  std::printf("%s", table.c_str());
  if (is_update) std::ofstream(docs, std::ios::binary) << wanted;
  const bool is_current = is_update || page == wanted;
  if (!is_current) std::printf("\n%s does not have this table: run with --update\n", docs.c_str());
  if (report.wrong > 0) std::printf("\n%d tests have another outcome than the list says\n", report.wrong);
  return report.wrong == 0 && is_current && report.tests > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: conformance DATA SKIPS DOCS [--update]\n");
    return 2;
  }
  const onnx::Skips skips = value_or_throw(onnx::read_skips(read(argv[2]), argv[2]));
  Report report;
  for (const std::string_view group : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const std::string& test : value_or_throw(onnx::find_tests(cat(argv[1], "/", group))))
      run_one(test, skips, report);
  for (const auto& [name, reason] : skips) {
    const auto& tests = report.skipped[reason];
    if (std::find(tests.begin(), tests.end(), name) == tests.end()) {
      std::printf("%s: in the list of skips, but there is no such test\n", name.c_str());
      ++report.wrong;
    }
  }
  return finish(report, argv[3], argc > 4 && std::string_view(argv[4]) == "--update");
}
