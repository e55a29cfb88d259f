// Runs a plan that was not made by this engine's own evaluations: one from a file, or of a program that is
// compiled as a whole. Tensors in, tensors out.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/plan/package.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// One thread at a time.
class PlanRunner {
 public:
  [[nodiscard]] static Result<PlanRunner> create(plan::Package package,
                                                 const std::shared_ptr<runtime::Device>& device);

  [[nodiscard]] const plan::Package& package() const { return package_; }

  /// The sizes that inputs of these shapes mean. Fails, naming the input and what was expected, if their
  /// number, a dtype, a rank or a size does not fit, or if a size does not follow from them.
  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_of(std::span<const op::HostTensor> inputs) const;

  /// The outputs for inputs of any sizes that the plan allows. `parameters` are by slot; those left out have
  /// the values they were written with.
  [[nodiscard]] Result<std::vector<op::HostTensor>> run(std::span<const op::HostTensor> inputs,
                                                        std::span<const double> parameters = {});

  /// Where everything lies; of the last run.
  [[nodiscard]] const plan::Binding& binding() const { return executable_->binding(); }

 private:
  PlanRunner(plan::Package package, std::unique_ptr<runtime::Executable> executable)
      : package_(std::move(package)), executable_(std::move(executable)) {}
  [[nodiscard]] const plan::Value& input(std::size_t i) const {
    return package_.plan->values[package_.plan->inputs[i]];
  }
  [[nodiscard]] Error wrong_input(std::size_t i, const op::HostTensor& given) const;
  [[nodiscard]] std::vector<std::uint64_t> parameter_bits(std::span<const double> parameters) const;

  plan::Package package_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<std::int64_t> sizes_;  ///< that the executable is prepared for
  bool is_prepared_ = false;
};

}  // namespace tessera::engine
