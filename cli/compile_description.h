// What `compile` makes of a graph description.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/compile_options.h"
#include "cli/program_file.h"

namespace tessera::cli {

/// Whether a file is taken for a description: its name ends in .json.
[[nodiscard]] bool is_description(const std::string& path);

/// A description without host functions, as a function of its buffers. An error says what is not valid, or
/// (code `unsupported`) what it has that is no op.
[[nodiscard]] Result<NamedProgram> read_description_program(const std::string& path);

/// Op nodes, and regions of such, that are compiled as one function.
struct DescribedGroup {
  std::vector<std::string> nodes;
  ir::FunctionRef function;
};

/// What is compiled of a description that has host functions. REQUIRES that it is valid.
[[nodiscard]] Result<std::vector<DescribedGroup>> read_description_groups(const std::string& path);

/// Prints what runs at each level: groups of op nodes with the plans a device would run, and all other steps.
/// The answer is no if the description is not valid.
[[nodiscard]] Result<Answer> compile_description(const CompileOptions& options, const std::string& device);

}  // namespace tessera::cli
