// Tests in the layout of the ONNX backend tests: a folder with model.onnx and
// test_data_set_N/{input,output}_N.pb.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/onnx/import.h"

namespace tessera::onnx {

/// The tolerance of the ONNX project's own runner.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct TestOutcome {
  enum class Kind : std::uint8_t { passed, failed, unsupported };
  Kind kind = Kind::failed;
  std::string message;           ///< why it did not pass
  bool ran_as_function = false;  ///< also as one imported function, with the same results
};

/// Runs one test. `unsupported` means that the model needs something that is not there; everything else that
/// goes wrong is a failure.
[[nodiscard]] TestOutcome run_test(const std::string& folder, const RunOptions& options = {},
                                   Tolerance tolerance = {});

/// Tests that are known not to pass, with the reason.
using Skips = std::map<std::string, std::string>;

/// Reads lines "name: reason"; those that begin with # say something to people. `file` is for errors.
[[nodiscard]] Result<Skips> read_skips(std::string_view text, const std::string& file);

/// The inputs of a test and the outputs it expects.
struct DataSet {
  std::string name;
  std::vector<DataValue> inputs, outputs;
};
[[nodiscard]] Result<std::vector<DataSet>> read_data_sets(const Model& model, const std::string& folder,
                                                          const Limits& limits = {});

/// The folders below `root`, or below the folders in it, that hold a model.onnx; sorted.
[[nodiscard]] Result<std::vector<std::string>> find_tests(const std::string& root);

/// Why outputs are not the expected ones within the tolerance; empty if they are.
[[nodiscard]] std::string difference(std::span<const DataValue> got, std::span<const DataValue> expected,
                                     Tolerance tolerance = {});

}  // namespace tessera::onnx
