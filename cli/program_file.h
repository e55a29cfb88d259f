// A program named on the command line: a text of the IR or an ONNX model.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::cli {

struct NamedProgram {
  ir::FunctionRef function;
  std::vector<std::string> outputs = {};  ///< their names; empty: those that the function has
};

/// The function in a file: a text that is one function, the last function of a module, or a model whose name
/// ends in .onnx. "-" is a text on standard input.
[[nodiscard]] Result<NamedProgram> read_program(const std::string& path);

/// A model as a function.
[[nodiscard]] Result<NamedProgram> read_onnx_program(const std::string& path);

[[nodiscard]] bool is_onnx_name(const std::string& path);

/// What plans are made for unless a command is told otherwise.
inline constexpr const char* default_plan_device = "cpu";

}  // namespace tessera::cli
