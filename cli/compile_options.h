// The options that `compile` and `explain` share.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/program_file.h"
#include "tessera/compile/pipeline.h"

namespace tessera::cli {

struct CompileOptions {
  std::string file;
  std::string function;  ///< of a module; empty: the last
  std::string device;    ///< what the plan is for; empty: the usual one
  std::vector<std::string> disabled;
  std::string floats = "rounding";
  bool decompose = false;
  bool verify = false;
  bool autotune = false;  ///< measures what is predicted to be close
  bool json = false;
};

void add_options(CLI::App& command, CompileOptions& options);
/// 64 for each: what symbols are where nobody says.
[[nodiscard]] std::vector<std::int64_t> usual_sizes(std::span<const Ref<ir::Var>> dims);
/// For a file of this kind. Memory is laid out for the usual sizes.
[[nodiscard]] compiler::PipelineOptions pipeline_options(const CompileOptions& options, FileKind kind);

/// Says on standard error what a function that somebody wrote as text does in vain.
void print_warnings(const NamedProgram& program, FileKind kind);

}  // namespace tessera::cli
