// The options of `run`, and the things that it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/run_outputs.h"
#include "cli/tensor_sources.h"
#include "tessera/engine/graph_package.h"
#include "tessera/engine/profile.h"

namespace tessera::cli {

struct RunOptions {
  std::string file;
  std::string function;  ///< of a module; may be empty
  TensorSourceOptions inputs;
  std::vector<std::string> parameters;  ///< SLOT=VALUE; of plans
  std::string device;                   ///< empty: the usual one
  bool autotune = false;                ///< of programs that are compiled first
  int repeat = 1;
  std::optional<double> seconds;  ///< when to give up
  std::optional<double> work;     ///< the most multiply-adds
  bool profile = false;           ///< show what each kernel took
  std::string trace;              ///< where the kernels go as events; empty: nowhere
  RunOutputOptions outputs;

  [[nodiscard]] ProfilingLevel profiling() const {
    return profile || !trace.empty() ? ProfilingLevel::per_kernel : ProfilingLevel::none;
  }
};

/// As plans where that can be, else node by node.
[[nodiscard]] Result<RunOutcome> run_model(const RunOptions& options);

/// A compiled plan, or a program or a description that is compiled first.
[[nodiscard]] Result<RunOutcome> run_plan(const RunOptions& options);

/// A graph description that was compiled, with what this program has for its kernel nodes: the code in the
/// package.
[[nodiscard]] Result<RunOutcome> run_graph(engine::GraphPackage package, const RunOptions& options);

}  // namespace tessera::cli
