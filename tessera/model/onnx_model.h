// ONNX models as functions on tensors.
//
//   const ts::OnnxModel model = ts::load_onnx("model.onnx");
//   const ts::Tensor y = model({x})[0];          // records; computes where a shape depends on data
//   const auto named = model({{"x", x}});        // inputs and outputs by name
//
// A call records the operators of the model as if they were written by hand: results are lazy, gradients flow
// through them, and sizes may differ from call to call. Weights are stored once and shared by all calls; they
// stay in the file, mapped, where its layout allows it: the file must not be changed while the model lives.
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

/// Copies share everything; several threads may call one model.
class OnnxModel {
 public:
  /// Those that a caller gives: inputs with a default are not among them.
  [[nodiscard]] const std::vector<OnnxValue>& inputs() const&;
  [[nodiscard]] const std::vector<OnnxValue>& outputs() const&;
  [[nodiscard]] std::vector<OnnxValue> inputs() && { return std::as_const(*this).inputs(); }
  [[nodiscard]] std::vector<OnnxValue> outputs() && { return std::as_const(*this).outputs(); }

  /// The outputs for these inputs, in their order. Throws Exception with the caller's line, the file and the
  /// node.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs, Here here = {}) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs, Here here = {}) const {
    return (*this)(std::span(inputs.begin(), inputs.size()), here);
  }
  /// The same by name: every input once, and no other.
  NamedTensors operator()(const NamedTensors& inputs, Here here = {}) const;

 private:
  friend OnnxModel load_onnx(const std::string& path, const OnnxOptions& options, Here here);
  struct State;
  std::shared_ptr<const State> state_;
};

/// Reads and checks a model. Throws Exception: what is wrong with the file, or all operators that are not
/// there.
OnnxModel load_onnx(const std::string& path, const OnnxOptions& options = {}, Here here = {});

}  // namespace tessera
