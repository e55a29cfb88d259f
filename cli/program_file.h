// A program named on the command line: a text of the IR or an ONNX model.
#pragma once

#include <string>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::cli {

/// The function in a file: a text that is one function, the last function of a module, or a model whose name
/// ends in .onnx. "-" is a text on standard input.
[[nodiscard]] Result<ir::FunctionRef> read_program(const std::string& path);

/// A model as a function.
[[nodiscard]] Result<ir::FunctionRef> read_onnx_program(const std::string& path);

}  // namespace tessera::cli
