// ONNX models, imported and run.
//
// `run` goes node by node with the shapes that the inputs have: it can do whatever the operators can, also
// where a shape depends on data. `import_function` writes the same program as one IR function for inputs of
// any size; where that cannot be done, its error has code `unsupported` and says which node needs to know
// what.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/onnx/model.h"
#include "tessera/onnx/read.h"
#include "tessera/onnx/value_target.h"
#include "tessera/onnx/walk.h"

namespace tessera::onnx {

/// An operator that a model uses and that cannot be imported.
struct Unsupported {
  std::string node;  ///< "node 'x' (Op)"
  std::string op;    ///< "Op", or "domain.Op"
  std::int64_t opset = 0;
};

/// All nodes whose operators are not there, also those in bodies and functions, in the order of the file.
[[nodiscard]] std::vector<Unsupported> unsupported_nodes(const Model& model);
/// An error that lists them all, if there are any.
[[nodiscard]] Result<void> check_operators(const Model& model);

/// The initializers of a graph by name: those of inputs are their defaults. REQUIRES that the graph lives as
/// long.
class Initializers {
 public:
  explicit Initializers(const Graph& graph) {
    for (const Tensor& tensor : graph.initializers) by_name_.emplace(tensor.name, &tensor);
  }
  /// The one of that name, or null.
  [[nodiscard]] const Tensor* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
  }

 private:
  std::unordered_map<std::string_view, const Tensor*> by_name_;  ///< only looked up
};
/// The inputs that a caller must give: those without an initializer of the same name.
[[nodiscard]] std::vector<const ValueInfo*> required_inputs(const Model& model);

/// Fails unless a tensor is what the model declares for an input. Sizes without a number may be anything.
[[nodiscard]] Result<void> check_input(const ValueInfo& input, Dtype dtype,
                                       std::span<const std::int64_t> shape);

/// Runs an imported function.
using FunctionRunner = std::function<Result<std::vector<HostTensor>>(const ir::FunctionRef& function,
                                                                     std::span<const HostTensor> inputs)>;

struct RunOptions {
  Limits limits = {};
  /// Computes each call; the reference kernels if it is empty.
  CallRunner call = {};
  /// Runs the model as one function, where a test does that; the reference kernels if it is empty.
  FunctionRunner function = {};
  /// Called before each node.
  NodeObserver observer = {};
};

/// The outputs of the model for these inputs: those of required_inputs, or all inputs of the graph.
[[nodiscard]] Result<std::vector<DataValue>> run(const Model& model, std::span<const DataValue> inputs,
                                                 const RunOptions& options = {});

/// The model as a function: one parameter per required input, dimensions with a name as size symbols.
[[nodiscard]] Result<ir::FunctionRef> import_function(const Model& model, const Limits& limits = {});

}  // namespace tessera::onnx
