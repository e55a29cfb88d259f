#include "tessera/onnx/conformance.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tessera/onnx/value_target.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using namespace tessera::onnx;

namespace fs = std::filesystem;

namespace {

std::string text_of(const HostTensor& tensor) {
  return cat(tensor.dtype(), "[", join(tensor.shape(), ", "), "]");
}

bool is_close(double got, double expected, Tolerance tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return expected == got;
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

std::string tensor_difference(const HostTensor& got, const HostTensor& expected, Tolerance tolerance) {
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape()))
    return cat("got ", text_of(got), ", expected ", text_of(expected));
  const auto a = numbers_of(got), b = numbers_of(expected);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!is_close(a[i], b[i], tolerance)) return cat("element ", i, " is ", a[i], ", expected ", b[i]);
  return {};
}

/// The files input_0.pb, input_1.pb, … of a data set, as many as there are of these types.
Result<std::vector<DataValue>> read_values(const fs::path& folder, std::string_view prefix,
                                           std::span<const DeclaredType* const> types, const Limits& limits) {
  std::vector<DataValue> out;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const fs::path file = folder / cat(prefix, "_", i, ".pb");
    std::error_code error;
    if (!fs::exists(file, error)) break;
    out.push_back(TESSERA_TRY(read_value(file.string(), *types[i], limits)));
  }
  return out;
}

/// A data set has values for all inputs, or for those without an initializer.
Result<std::vector<DataValue>> inputs_of(const Model& model, const fs::path& folder, const Limits& limits) {
  std::vector<const DeclaredType*> all, required;
  for (const ValueInfo& input : model.graph.inputs) all.push_back(&input.type);
  for (const ValueInfo* input : required_inputs(model)) required.push_back(&input->type);
  std::error_code error;
  const bool has_all = all.empty() || fs::exists(folder / cat("input_", all.size() - 1, ".pb"), error);
  return read_values(folder, "input", has_all ? all : required, limits);
}

std::string value_difference(const DataValue& got, const DataValue& expected, Tolerance tolerance) {
  constexpr std::string_view kinds[] = {"nothing", "a tensor", "a sequence"};
  if (got.kind != expected.kind)
    return cat("got ", kinds[static_cast<std::size_t>(got.kind)], ", expected ",
               kinds[static_cast<std::size_t>(expected.kind)]);
  if (got.tensors.size() != expected.tensors.size())
    return cat("got ", got.tensors.size(), " tensors, expected ", expected.tensors.size());
  for (std::size_t i = 0; i < expected.tensors.size(); ++i)
    if (const std::string why = tensor_difference(got.tensors[i], expected.tensors[i], tolerance);
        !why.empty())
      return expected.kind == DataValue::Kind::sequence ? cat("tensor ", i, ": ", why) : why;
  return {};
}

TestOutcome outcome_of(const Error& error) {
  const auto kind =
      error.code() == ErrorCode::unsupported ? TestOutcome::Kind::unsupported : TestOutcome::Kind::failed;
  return {kind, error.to_text(), false};
}

/// The results of an imported function, as the values of a model.
Result<std::vector<DataValue>> run_function(const ir::FunctionRef& function,
                                            std::span<const DataValue> inputs, const FunctionRunner& runner) {
  std::vector<HostTensor> tensors;
  for (const DataValue& input : inputs) {
    if (input.kind != DataValue::Kind::tensor)
      return Error(ErrorCode::invalid_argument, "an input is no tensor");
    tensors.push_back(input.tensors[0]);
  }
  std::vector<DataValue> out;
  for (HostTensor& result :
       TESSERA_TRY(runner ? runner(function, tensors) : op::interpret(*function, tensors)))
    out.push_back({DataValue::Kind::tensor, {std::move(result)}});
  return out;
}

Result<std::string> run_data_set(const Model& model, const ir::FunctionRef& function, const DataSet& set,
                                 const RunOptions& options, Tolerance tolerance) {
  std::string why = difference(TESSERA_TRY(run(model, set.inputs, options)), set.outputs, tolerance);
  if (!why.empty() || function == nullptr || set.inputs.size() != function->params.size()) return why;
  why = difference(TESSERA_TRY(run_function(function, set.inputs, options.function)), set.outputs, tolerance);
  return why.empty() ? why : cat("as a function: ", why);
}

}  // namespace

std::string tessera::onnx::difference(std::span<const DataValue> got, std::span<const DataValue> expected,
                                      Tolerance tolerance) {
  if (got.size() < expected.size()) return cat("got ", got.size(), " outputs, expected ", expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const std::string why = value_difference(got[i], expected[i], tolerance); !why.empty())
      return cat("output ", i, ": ", why);
  return {};
}

Result<std::vector<DataSet>> tessera::onnx::read_data_sets(const Model& model, const std::string& folder,
                                                           const Limits& limits) {
  std::vector<DataSet> out;
  std::vector<const DeclaredType*> types;
  for (const ValueInfo& output : model.graph.outputs) types.push_back(&output.type);
  std::error_code error;
  for (fs::path set;
       set = fs::path(folder) / cat("test_data_set_", out.size()), fs::is_directory(set, error);) {
    auto inputs = TESSERA_TRY(inputs_of(model, set, limits));
    auto outputs = TESSERA_TRY(read_values(set, "output", types, limits));
    out.push_back({set.filename().string(), std::move(inputs), std::move(outputs)});
    if (out.back().outputs.empty())
      return Error(ErrorCode::io, "the data set has no outputs", {set.string(), 0, 0});
  }
  if (out.empty()) return Error(ErrorCode::io, "the test has no test_data_set_0", {folder, 0, 0});
  return out;
}

TestOutcome tessera::onnx::run_test(const std::string& folder, const RunOptions& options,
                                    Tolerance tolerance) {
  const auto model = read_model((fs::path(folder) / "model.onnx").string(), options.limits);
  if (!model) return outcome_of(model.error());
  const auto sets = read_data_sets(*model, folder, options.limits);
  if (!sets) return outcome_of(sets.error());
  auto function = import_function(*model, options.limits);
  if (!function && function.error().code() != ErrorCode::unsupported) return outcome_of(function.error());
  const ir::FunctionRef imported = function ? *function : ir::FunctionRef();
  for (const DataSet& set : *sets) {
    auto why = run_data_set(*model, imported, set, options, tolerance);
    if (!why) return outcome_of(why.error());
    if (!why->empty()) return {TestOutcome::Kind::failed, cat(set.name, ": ", *why), false};
  }
  return {TestOutcome::Kind::passed, {}, imported != nullptr};
}

Result<Skips> tessera::onnx::read_skips(std::string_view text, const std::string& file) {
  Skips out;
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    if (row.empty() || row[0] == '#') continue;
    const std::size_t colon = row.find(": ");
    if (colon == 0 || colon == std::string_view::npos)
      return Error(ErrorCode::invalid_argument,
                   cat("expected 'test: reason', got ", quote(shortened(row, 60))), {file, line, 0});
    out[std::string(row.substr(0, colon))] = row.substr(colon + 2);
  }
  return out;
}

Result<std::vector<std::string>> tessera::onnx::find_tests(const std::string& root) {
  std::error_code error;
  std::vector<std::string> out;
  if (fs::exists(fs::path(root) / "model.onnx", error)) return std::vector<std::string>{root};
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    if (at->path().filename() == "model.onnx") out.push_back(at->path().parent_path().string());
  if (error) return Error(ErrorCode::io, error.message(), {printable(root), 0, 0});
  std::sort(out.begin(), out.end());
  return out;
}
