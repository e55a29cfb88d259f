// An ONNX model as plans on a device: what is fast where the model can be written as a function.
#pragma once

#include "tessera/engine/plan_runner.h"
#include "tessera/onnx/import.h"

namespace tessera {

/// One thread at a time.
class PlannedModel {
 public:
  /// Fails with code `unsupported`, saying why, if the model has loops or branches, or sizes that no plan can
  /// learn: then onnx::run is the way.
  [[nodiscard]] static Result<PlannedModel> create(const onnx::Model& model, runtime::Device& device,
                                                   const onnx::Limits& limits = {});

  /// The outputs for the required inputs of the model. Checks its limits before it computes.
  [[nodiscard]] Result<std::vector<onnx::DataValue>> run(std::span<const onnx::DataValue> inputs);

  void set_profiling(engine::ProfilingLevel level) { runner_.set_profiling(level); }
  [[nodiscard]] engine::Profile profile() const { return runner_.profile(); }

  [[nodiscard]] const plan::Program& program() const { return runner_.package().program; }

 private:
  explicit PlannedModel(engine::PlanRunner runner) : runner_(std::move(runner)) {}

  engine::PlanRunner runner_;
  std::vector<onnx::ValueInfo> inputs_;
  std::string file_;
};

}  // namespace tessera
