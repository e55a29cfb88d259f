// A function as a plan on one device, for those who have tensors in host memory and no engine.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "tessera/compile/plan_function.h"
#include "tessera/runtime/device.h"

namespace tessera {

/// What one run may take.
struct PlanLimits {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();  ///< of values that live at once
  double work = std::numeric_limits<double>::infinity();          ///< multiply-adds, about; without regions
};

/// One thread at a time.
class PlannedFunction {
 public:
  /// Compiles and loads it. Fails with code `unsupported` if a plan cannot have what the function does: sizes
  /// that depend on data outside of regions.
  [[nodiscard]] static Result<PlannedFunction> create(const ir::FunctionRef& function,
                                                      runtime::Device& device,
                                                      const compiler::PlanOptions& options = {},
                                                      PlanLimits limits = {});

  /// The results for these inputs, whose sizes may differ from run to run.
  [[nodiscard]] Result<std::vector<op::HostTensor>> run(std::span<const op::HostTensor> inputs);

  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }

 private:
  [[nodiscard]] Result<void> prepare(std::span<const op::HostTensor> inputs);
  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_of(std::span<const op::HostTensor> inputs) const;
  [[nodiscard]] op::HostTensor output(std::size_t i, std::span<const op::HostTensor> inputs,
                                      std::span<const op::HostTensor> buffers) const;

  [[nodiscard]] Result<void> check_work(std::span<const std::int64_t> sizes) const;

  ir::FunctionRef function_;
  PlanLimits limits_;
  plan::PlanRef plan_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<op::Extents> shapes_;  ///< of the inputs that it is prepared for
  bool is_prepared_ = false;
};

/// The results of a function on a device: by a plan, or by the reference where there can be none.
[[nodiscard]] Result<std::vector<op::HostTensor>> run_function(const ir::FunctionRef& function,
                                                               std::span<const op::HostTensor> inputs,
                                                               runtime::Device& device);

}  // namespace tessera
