// An ONNX model as plans on a device: what is fast where the model can be written as a function, or as one
// for each value of its flags, the inputs that are one boolean: models of decoders choose by such a flag
// whether there are words before, and have other shapes then.
#pragma once

#include "tessera/engine/plan_runner.h"
#include "tessera/onnx/import.h"

namespace tessera {

/// One thread at a time.
class PlannedModel {
 public:
  /// Fails with code `unsupported`, saying why, if the model has loops that its data end, branches of other
  /// shapes by other values than flags, or sizes that no plan can learn: then onnx::run is the way.
  /// REQUIRES that `device` lives as long as the model.
  [[nodiscard]] static Result<PlannedModel> create(const onnx::Model& model, runtime::Device& device,
                                                   const onnx::Limits& limits = {});

  /// The outputs for the required inputs of the model. Checks its limits before it computes.
  [[nodiscard]] Result<std::vector<onnx::DataValue>> run(std::span<const onnx::DataValue> inputs);

  /// Measures runs from now on, and forgets those that were measured.
  void set_profiling(ProfilingLevel level) { runner_.set_profiling(level); }
  [[nodiscard]] engine::Profile profile() const { return runner_.profile(); }

  /// One, or one for each combination of flags, the first of which counts least.
  [[nodiscard]] std::size_t programs() const { return runner_.package().variants(); }
  /// Made when it is first needed: models have flags that a program never changes.
  [[nodiscard]] Result<const plan::Program*> program(std::size_t index = 0) { return runner_.load(index); }

 private:
  PlannedModel(const onnx::Model& model, engine::PlanRunner runner);

  engine::PlanRunner runner_;
  std::vector<onnx::ValueInfo> inputs_;
  std::string file_;
};

}  // namespace tessera
