// What executables on the host share: where values lie, numbers in their cells, regions, and the walk over
// the steps. A device adds how it runs a call or a kernel.
#pragma once

#include <vector>

#include "tessera/runtime/executable.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::runtime {

/// A step that computes, with its arrays.
struct HostWork {
  plan::StepId step = 0;
  std::vector<op::Array> inputs;
  std::vector<op::Array> results;
};

class HostExecutable : public Executable {
 public:
  HostExecutable(plan::PlanRef plan, std::shared_ptr<MemoryPool> pool)
      : plan_(std::move(plan)), pool_(std::move(pool)) {}

  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) override;
  [[nodiscard]] const plan::Binding& binding() const override { return binding_; }
  [[nodiscard]] Result<void> run(const Launch& launch) override;

 protected:
  /// Runs one call, kernel or function. `index` counts the works; `moved`: an address is not what it was.
  [[nodiscard]] virtual Result<void> run_work(std::size_t index, HostWork& work, bool moved) = 0;
  /// There are new sizes.
  virtual void sizes_changed() {}

  /// Runs the ops that a function or a kernel stands for by the reference.
  [[nodiscard]] Result<void> run_by_ops(const HostWork& work) const;

  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }
  [[nodiscard]] const plan::Step& step_of(const HostWork& work) const { return plan_->steps[work.step]; }
  [[nodiscard]] op::CallInfo call_of(const HostWork& work) const {
    return {*step_of(work).card, binding_.input_types[work.step], binding_.attributes[work.step]};
  }
  [[nodiscard]] std::span<const HostWork> works() const { return work_; }
  /// The parameters of the launch, by slot.
  [[nodiscard]] std::span<const double> numbers() const { return numbers_; }

 private:
  void add_work(plan::StepId step);
  [[nodiscard]] Result<void> run_one(std::size_t index, const Launch& launch);
  void set_parameters(const Launch& launch);
  [[nodiscard]] std::byte* address(plan::ValueId value, const Launch& launch);
  [[nodiscard]] bool set_addresses(HostWork& work, const Launch& launch);

  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  plan::Binding binding_;
  std::vector<HostWork> work_;
  std::vector<std::uint64_t> cells_;
  std::vector<double> numbers_;
  Ref<Buffer> scratch_;
};

/// Sets all elements to zero: what reference kernels expect of their results.
void clear(const op::Array& array);

}  // namespace tessera::runtime
