// What `compile` makes of a graph description.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/pass_dumps.h"
#include "cli/program_file.h"
#include "tessera/base/json.h"
#include "tessera/engine/graph_package.h"

namespace tessera::cli {

/// A description without host functions, as a function of its buffers. An error says what is not valid, or
/// (code `unsupported`) what it has that is no op.
[[nodiscard]] Result<NamedProgram> read_description_program(const ProgramFile& file);

/// Whether a file is a description that is no program: it has host functions, or steps that no program has.
[[nodiscard]] bool is_no_program(const ProgramFile& file, const Result<NamedProgram>& program);

/// A description as it is, with its op nodes compiled.
[[nodiscard]] Result<engine::GraphPackage> compile_graph(const ProgramFile& file, runtime::Device& device);

/// What a program that runs a description must have: kernels and captures by name, each once.
struct HostFunctions {
  std::vector<std::string> kernels, captures;
};
[[nodiscard]] HostFunctions host_functions_of(const description::Description& description);
[[nodiscard]] std::string to_text(const HostFunctions& functions);
void write_json(JsonWriter& json, const HostFunctions& functions);

/// Op nodes, and regions of such, that are compiled as one function.
struct DescribedGroup {
  std::vector<std::string> nodes;
  ir::FunctionRef function;
};

struct DescribedGroups {
  std::vector<DescribedGroup> groups;
  HostFunctions host_functions;
};

/// What is compiled of a description that has host functions. REQUIRES that it is valid.
[[nodiscard]] Result<DescribedGroups> read_description_groups(const ProgramFile& file);

struct DescriptionOptions {
  std::string device;
  compiler::PipelineOptions pipeline;
  bool json = false;
  PassDumps* dumps = nullptr;  ///< follow the pipeline
};

/// Prints what runs at each level: groups of op nodes with the plans a device would run, and all other steps.
[[nodiscard]] Result<Answer> compile_description(const ProgramFile& file, const FunctionChoice& choice,
                                                 const DescriptionOptions& options);

/// Writes a description as it is into a file, with its op nodes compiled.
[[nodiscard]] Result<void> write_graph(const ProgramFile& file, const std::string& output,
                                       const DescriptionOptions& options);

}  // namespace tessera::cli
