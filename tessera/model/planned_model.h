// An ONNX model as plans on a device: what is fast where the model can be written as a function, or as one
// for each value of its flags, the inputs that are one boolean: models of decoders choose by such a flag
// whether there are words before, and have other shapes then.
#pragma once

#include <optional>

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
  void set_profiling(ProfilingLevel level);
  /// Of the plan that ran last.
  [[nodiscard]] engine::Profile profile() const;

  /// One, or one for each combination of flags, the first of which counts least.
  [[nodiscard]] std::size_t programs() const { return plans_.size(); }
  /// Made when it is first needed.
  [[nodiscard]] Result<const plan::Program*> program(std::size_t index = 0) {
    TESSERA_TRY(make(plans_[index]));
    return &plans_[index].runner->package().program;
  }

 private:
  /// What is made of it when it first runs: models have flags that a program never changes.
  struct Plan {
    ir::FunctionRef function;  ///< until then
    std::optional<engine::PlanRunner> runner;
  };

  PlannedModel(runtime::Device& device, const onnx::Limits& limits) : device_(&device), limits_(limits) {}
  [[nodiscard]] Result<void> add_plan(const onnx::Model& model);
  [[nodiscard]] Result<void> plan_by_flags(const onnx::Model& model);
  [[nodiscard]] Result<void> make(Plan& plan) const;

  runtime::Device* device_;
  onnx::Limits limits_;
  std::vector<Plan> plans_;         ///< by the bits of the flags
  std::vector<std::size_t> flags_;  ///< inputs that the plans do not have
  std::size_t last_ = 0;            ///< plan that ran
  ProfilingLevel profiling_ = ProfilingLevel::none;
  std::vector<onnx::ValueInfo> inputs_;
  std::string file_;
};

}  // namespace tessera
