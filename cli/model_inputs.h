// What the commands that run a model give to it: values from files, or random ones.
#pragma once

#include <vector>

#include "cli/tensor_sources.h"
#include "tessera/onnx/import.h"

namespace tessera::cli {

/// A value for each input that the model requires, in their order.
[[nodiscard]] Result<std::vector<onnx::DataValue>> model_inputs(const onnx::Model& model,
                                                                const TensorSourceOptions& options);

}  // namespace tessera::cli
