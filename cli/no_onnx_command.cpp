// The ONNX commands of a build without ONNX: they say so.
#include "cli/command.h"
#include "cli/program_file.h"
#include "cli/run_options.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

Error no_onnx() {
  return Error(
      ErrorCode::unsupported,
      "this build has no ONNX: install libonnx-dev and libprotobuf-dev, configure with TESSERA_ONNX=ON");
}

void add_missing(Commands& commands, const std::string& name) {
  CLI::App& command = commands.add(name, "not in this build: libonnx-dev and libprotobuf-dev were not found",
                                   "", []() -> Result<Answer> { return no_onnx(); });
  command.allow_extras();
}

}  // namespace

void tessera::cli::add_diff(Commands& commands) { add_missing(commands, "diff"); }
void tessera::cli::add_inspect(Commands& commands) { add_missing(commands, "inspect"); }
void tessera::cli::add_onnx_test(Commands& commands) { add_missing(commands, "onnx-test"); }

Result<NamedProgram> tessera::cli::read_onnx_program(const std::string&) { return no_onnx(); }

Result<op::HostTensor> tessera::cli::read_tensor_proto(const std::string&) { return no_onnx(); }

Result<RunOutcome> tessera::cli::run_model(const RunOptions&) { return no_onnx(); }
