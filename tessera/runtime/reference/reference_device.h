// The device that runs everything by the cards' reference kernels.
#pragma once

#include "tessera/runtime/device.h"

namespace tessera::runtime {

class ReferenceDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] std::string found() const override { return "ops as they are defined, on one thread"; }
  [[nodiscard]] Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                 std::span<const op::Array> results) override;
  [[nodiscard]] const pattern::Target& target() const override { return target_; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                         const std::shared_ptr<MemoryPool>& pool) override;

 private:
  pattern::Target target_{.name = "reference"};
};

}  // namespace tessera::runtime
