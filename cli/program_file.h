// A program named on the command line: a text of the IR, an ONNX model, or a graph description.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/op/array.h"

namespace tessera::cli {

struct NamedProgram {
  ir::FunctionRef function;
  std::vector<std::string> outputs = {};   ///< their names; empty: those that the function has
  std::vector<std::uint32_t> states = {};  ///< outputs that are the last inputs of the next run
};

/// Which function of a module is meant.
struct FunctionChoice {
  std::string name = {};         ///< empty: not said
  bool last_of_several = false;  ///< if it is not said: the last, else an error that lists them
};

enum class FileKind : std::uint8_t {
  model,        ///< its name ends in .onnx
  plan,         ///< it begins as `compile -o` writes it
  description,  ///< its name ends in .json, or it begins as JSON does
  text,         ///< of the IR
};

struct ProgramFile {
  std::string path;  ///< "-": standard input
  FileKind kind = FileKind::text;
  std::string content;  ///< of a model, and of a plan in a file, not read
};

/// Finds out what a file is, and reads it once: standard input gives nothing a second time.
[[nodiscard]] Result<ProgramFile> open_program(const std::string& path);

/// The function in a file: a text that is one function or a module, a model, or a graph description without
/// host functions.
[[nodiscard]] Result<NamedProgram> read_program(const ProgramFile& file, const FunctionChoice& choice);

/// An error if a function is chosen of a program that is but one.
[[nodiscard]] Result<void> check_choice(const ProgramFile& file, const FunctionChoice& choice);

/// A model as a function.
[[nodiscard]] Result<NamedProgram> read_onnx_program(const std::string& path);

/// A TensorProto in a file.
[[nodiscard]] Result<op::HostTensor> read_tensor_proto(const std::string& path);

[[nodiscard]] bool is_onnx_name(const std::string& path);

/// What plans are made for unless a command is told otherwise.
inline constexpr const char* default_plan_device = "cpu";

}  // namespace tessera::cli
