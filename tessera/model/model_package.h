// How the programs of an ONNX model are called: names for those who run them from a file or by values.
#pragma once

#include "tessera/compile/package.h"
#include "tessera/onnx/variants.h"

namespace tessera {

/// The names of the model's required inputs and its outputs, and the inputs that choose among programs.
[[nodiscard]] compiler::PackageOptions package_options(const onnx::Model& model,
                                                       std::span<const std::size_t> flags);

}  // namespace tessera
