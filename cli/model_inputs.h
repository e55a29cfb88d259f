// What the commands that run a model give to it: values from files, or random ones.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tessera/onnx/import.h"

namespace tessera::cli {

struct ModelInputOptions {
  std::vector<std::string> inputs;      ///< [NAME=]SOURCE
  std::optional<std::uint64_t> random;  ///< a seed: inputs that are not given are random
  std::vector<std::string> dims;        ///< NAME=SIZE, or INPUT:AXIS=SIZE
};

void add_model_input_options(CLI::App& command, ModelInputOptions& options);

/// A value for each input that the model requires, in their order.
[[nodiscard]] Result<std::vector<onnx::DataValue>> model_inputs(const onnx::Model& model,
                                                                const ModelInputOptions& options);

}  // namespace tessera::cli
