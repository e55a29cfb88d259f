// The last step of building: the axes of a draft become the iteration space of a kernel.
#pragma once

#include "tessera/kernel/region_builder.h"

namespace tessera::kernel {

/// Used once.
class KernelWriter {
 public:
  explicit KernelWriter(RegionBuilder& draft) : draft_(draft) {}

  [[nodiscard]] Result<Kernel> write(std::span<const op::Value> results);

 private:
  using AxisId = RegionBuilder::AxisId;
  using AxisIds = SmallVector<AxisId, 4>;

  struct Output {
    ValueId value = no_value;
    AxisIds axes;  ///< roots, in the order of the axes of the tensor
    op::ValueType type;
    bool is_reshaped = false;
  };

  Result<void> collect_outputs(std::span<const op::Value> results);
  void find_live();
  Result<void> check_values();
  Result<void> find_reduced_axes();
  Result<void> order_axes();
  Result<void> check_output(const Output& output) const;
  std::uint32_t add_operand(Operand operand);
  Result<void> write_loads();
  void write_stores();
  Result<void> write_sizes();
  Result<void> write_body();
  Result<Instruction> rewritten(const Instruction& instruction);
  Result<Instruction> extent_instruction(AxisId axis);

  [[nodiscard]] AxisIds roots(std::span<const AxisId> axes);
  [[nodiscard]] std::optional<std::uint32_t> number_of(AxisId root) const;
  [[nodiscard]] bool is_reduced(AxisId root) const;

  RegionBuilder& draft_;
  Kernel kernel_;
  std::vector<Output> outputs_;
  std::vector<bool> live_;
  AxisIds reduced_;                     ///< roots
  AxisIds order_;                       ///< roots, by the number of the kernel's axis
  std::vector<std::uint32_t> load_of_;  ///< the operand of each load
  std::vector<ValueId> new_ids_;
  BodyDraft body_;
};

}  // namespace tessera::kernel
