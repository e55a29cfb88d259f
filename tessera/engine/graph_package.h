// A graph description in a file: checked, ordered and compiled once, run by other processes.
//
//   const auto package = compile_graph(description, **find_device("cpu"));
//   TESSERA_TRY(save_graph(*package, "step.plan"));
//   …                                              // in another process, which has kernels of these names
//   auto graph = make_graph(*load_graph("step.plan"), kernels, {.bindings = bindings});
//
// The file has the description, its schedule, where buffers lie, and a plan for each group of ops; host
// functions are in it by their names alone, the code of kernels on a device as it was read. docs/describe.md
// says more, docs/plan.md has the layout. A file is for the version that wrote it, and nothing that a file
// contains crashes the program that reads it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/describe/host_graph.h"
#include "tessera/engine/op_compiler.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// The code of kernels as it was in a file.
struct CodeText {
  std::string path;  ///< as description::code_path says
  std::string text;

  static constexpr auto fields() {
    return std::tuple{usual("path", &CodeText::path), usual("text", &CodeText::text)};
  }
};

/// All that it takes to run a description but its host functions.
struct GraphPackage {
  std::string device;  ///< that it was made for
  std::shared_ptr<const description::Program> program;
  description::Grouping grouping;
  std::vector<plan::PlanRef> plans;  ///< by group; null: its nodes run one by one
  std::vector<CodeText> code;
};

/// Called with each group before it is compiled.
using GroupVisitor = std::function<void(const description::Program&, const description::OpGroup&)>;

/// Compiles what is valid. On a device with memory of its own op nodes are not compiled together, and have no
/// plans.
[[nodiscard]] Result<GraphPackage> compile_graph(std::shared_ptr<const description::Program> program,
                                                 runtime::Device& device,
                                                 const compiler::PlanOptions& options = exact_plans(),
                                                 const GroupVisitor& visit = {});
/// Validates first. The error of an invalid description is its first, with the others as notes.
[[nodiscard]] Result<GraphPackage> compile_graph(description::Description description,
                                                 runtime::Device& device);

/// The bytes of a file. Fails if a node calls a function that has no name, or an op of this process: the
/// error says which.
[[nodiscard]] Result<std::string> to_bytes(const GraphPackage& package);
/// `name` is for messages.
[[nodiscard]] Result<GraphPackage> graph_from_bytes(const Bytes& bytes, const std::string& name);

/// Writes a file whole; a failure leaves what was there.
[[nodiscard]] Result<void> save_graph(const GraphPackage& package, const std::string& path);
[[nodiscard]] Result<GraphPackage> load_graph(const std::string& path);
/// Whether a file begins as those that save_graph() writes. False if it cannot be read.
[[nodiscard]] bool is_graph(const std::string& path);
[[nodiscard]] bool begins_graph(std::string_view bytes);

/// A graph that runs as the package says, with op nodes on `device`; null: on the one it was made for, which
/// is the graph's if it has memory of its own and the options name none. Kernels that the table does not have
/// are made of the code in the package. The error has all names that are missing, and all kernels that take
/// other parameters than their nodes have.
[[nodiscard]] Result<std::unique_ptr<description::HostGraph>> make_graph(
    GraphPackage package, description::KernelTable kernels, description::HostOptions options = {},
    std::shared_ptr<runtime::Device> device = {});

}  // namespace tessera::engine
