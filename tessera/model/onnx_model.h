// ONNX models as functions on tensors.
//
//   const ts::OnnxModel model = ts::load_onnx("model.onnx");
//   const ts::Tensor y = model({x})[0];          // computes
//   const auto named = model({{"x", x}});        // inputs and outputs by name
//
// The first call compiles the model to plans for all sizes, and every call launches them: inputs are read
// where they lie, outputs are stored tensors on the device. Where a gradient is tracked, while a function is
// traced, and where a model cannot be plans, a call records the operators as if they were written by hand.
// Weights are shared by all calls; they stay in the file, mapped, where its layout allows it: the file must
// not be changed while the model lives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/onnx/limits.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

namespace onnx {
struct Model;
}

struct OnnxOptions {
  onnx::Limits limits = {};                     ///< of the file, and of each call
  std::shared_ptr<engine::Engine> engine = {};  ///< null: the default engine
};

/// An input or an output as the file declares it.
struct OnnxValue {
  std::string name;
  std::optional<Dtype> dtype;                     ///< nothing: not declared, or none that tensors have
  std::optional<std::vector<std::string>> shape;  ///< "3", "batch", or "?" where nothing is said
};

/// Copies share everything; several threads may call one model at once.
class OnnxModel {
 public:
  /// Those that a caller gives: inputs with a default are not among them.
  [[nodiscard]] const std::vector<OnnxValue>& inputs() const&;
  [[nodiscard]] const std::vector<OnnxValue>& outputs() const&;
  [[nodiscard]] std::vector<OnnxValue> inputs() && { return std::as_const(*this).inputs(); }
  [[nodiscard]] std::vector<OnnxValue> outputs() && { return std::as_const(*this).outputs(); }

  /// The outputs for these inputs, in their order; inputs that are lazy are evaluated. Throws Exception with
  /// the caller's line, the file and the node.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs, Here here = {}) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs, Here here = {}) const {
    return (*this)(std::span(inputs.begin(), inputs.size()), here);
  }
  /// The same by name: every input once, and no other.
  NamedTensors operator()(const NamedTensors& inputs, Here here = {}) const;

  /// Why calls record the operators also where nobody asks for a gradient; empty: they launch plans, which
  /// are made now if they were not yet.
  [[nodiscard]] std::string why_recorded() const;

  /// What was read.
  [[nodiscard]] const onnx::Model& source() const;

 private:
  friend OnnxModel onnx_model(onnx::Model model, const OnnxOptions& options);
  struct State;
  std::shared_ptr<State> state_;
};

/// Reads and checks a model. Throws Exception: what is wrong with the file, or all operators that are not
/// there.
OnnxModel load_onnx(const std::string& path, const OnnxOptions& options = {}, Here here = {});
/// A model that was read (onnx/import.h). REQUIRES that its operators are there.
OnnxModel onnx_model(onnx::Model model, const OnnxOptions& options = {});

}  // namespace tessera
