// A program named on the command line: a text of the IR, an ONNX model, or a graph description.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/compile/package.h"
#include "tessera/engine/graph_package.h"
#include "tessera/ir/function.h"
#include "tessera/op/array.h"
#include "tessera/runtime/device.h"

namespace tessera::cli {

struct NamedProgram {
  std::vector<ir::FunctionRef> functions;  ///< one, or one for each combination of values of the flags
  compiler::PackageOptions names = {};     ///< empty where they are those that the function has

  /// "use_cache = true"; empty if there is but one function.
  [[nodiscard]] std::string variant_text(std::size_t variant) const {
    return plan::variant_text(names.inputs, names.flags, variant);
  }
};

/// Which function of a module is meant.
struct FunctionChoice {
  std::string name = {};         ///< empty: not said
  bool last_of_several = false;  ///< if it is not said: the last, else an error that lists them
};

enum class FileKind : std::uint8_t {
  model,        ///< its name ends in .onnx
  plan,         ///< it begins as `compile -o` writes it
  graph,        ///< likewise, of a description that is no program
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

/// A file of kind `plan`, and one of kind `graph`.
[[nodiscard]] Result<plan::Package> read_plan(const ProgramFile& file);
[[nodiscard]] Result<engine::GraphPackage> read_graph(const ProgramFile& file);

/// An error if a function is chosen of a program that is but one.
[[nodiscard]] Result<void> check_choice(const ProgramFile& file, const FunctionChoice& choice);

/// A model as a function, or as one for each value of its flags.
[[nodiscard]] Result<NamedProgram> read_onnx_program(const std::string& path);

/// A TensorProto in a file.
[[nodiscard]] Result<op::HostTensor> read_tensor_proto(const std::string& path);

[[nodiscard]] bool is_onnx_name(const std::string& path);

/// The device of that name; if it is empty, what engines use that are not told otherwise.
[[nodiscard]] Result<std::shared_ptr<runtime::Device>> chosen_device(const std::string& name);

/// What --device says of itself, behind what it is for.
[[nodiscard]] std::string device_option_text(std::string_view what);

}  // namespace tessera::cli
