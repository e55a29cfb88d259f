// Runs a plan step by step with the reference kernels.
#pragma once

#include <vector>

#include "tessera/runtime/executable.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::runtime {

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(plan::PlanRef plan, std::shared_ptr<MemoryPool> pool)
      : plan_(std::move(plan)), pool_(std::move(pool)) {}

  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) override;
  [[nodiscard]] const plan::Binding& binding() const override { return binding_; }
  [[nodiscard]] Result<void> run(const Launch& launch) override;

 private:
  /// A step that computes, with its arrays; their pointers are set at each launch.
  struct Work {
    plan::StepId step = 0;
    std::vector<op::Array> inputs;
    std::vector<op::Array> results;
  };

  void add_work(plan::StepId step);
  void set_parameters(const Launch& launch);
  [[nodiscard]] std::byte* address(plan::ValueId value, const Launch& launch) const;
  [[nodiscard]] Result<void> run(Work& work, const Launch& launch);
  [[nodiscard]] Result<void> run_function(const plan::Step& step, const Work& work) const;

  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  plan::Binding binding_;
  std::vector<Work> work_;
  std::vector<std::uint64_t> cells_;
  Ref<Buffer> scratch_;
};

}  // namespace tessera::runtime
