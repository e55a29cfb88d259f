// What `compile` makes of a graph description.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/pass_dumps.h"
#include "cli/program_file.h"

namespace tessera::cli {

/// A description without host functions, as a function of its buffers. An error says what is not valid, or
/// (code `unsupported`) what it has that is no op.
[[nodiscard]] Result<NamedProgram> read_description_program(const ProgramFile& file);

/// Op nodes, and regions of such, that are compiled as one function.
struct DescribedGroup {
  std::vector<std::string> nodes;
  ir::FunctionRef function;
};

/// What is compiled of a description that has host functions. REQUIRES that it is valid.
[[nodiscard]] Result<std::vector<DescribedGroup>> read_description_groups(const ProgramFile& file);

struct DescriptionOptions {
  std::string device;
  compiler::PipelineOptions pipeline;
  bool json = false;
  PassDumps* dumps = nullptr;  ///< follow the pipeline
};

/// Prints what runs at each level: groups of op nodes with the plans a device would run, and all other steps.
[[nodiscard]] Result<Answer> compile_description(const ProgramFile& file, const FunctionChoice& choice,
                                                 const DescriptionOptions& options);

}  // namespace tessera::cli
