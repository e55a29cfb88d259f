// A plan on a GPU: one resident graph. A launch compares addresses and numbers with what the nodes hold, and
// patches those that hold something else. A region that the host drives stands between two graphs.
#pragma once

#include <vector>

#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/plan_program.h"
#include "tessera/runtime/cuda/resident_graph.h"

namespace tessera::runtime::cuda {

class CudaExecutable final : public Executable {
 public:
  /// Nothing else uses `capturing`.
  CudaExecutable(std::shared_ptr<CudaDevice> device, plan::PlanRef plan, std::shared_ptr<MemoryPool> pool,
                 std::shared_ptr<const Stream> capturing);

  /// Refuses sizes that need more memory than the device has, before any is taken.
  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) override;
  [[nodiscard]] const plan::Binding& binding() const override { return prepared_.binding; }
  /// Returns when the work is queued, unless indices have to be checked.
  [[nodiscard]] Result<void> run(const runtime::Launch& launch) override;

  [[nodiscard]] LaunchUpdate launch_update() const override;
  /// What the last run had to change.
  [[nodiscard]] const GraphUpdate& last_update() const { return last_update_; }
  [[nodiscard]] const PlanProgram& program() const { return prepared_.program; }

 private:
  /// Where an address or a number goes.
  struct Use {
    std::uint32_t node = 0;
    std::uint32_t argument = 0;
  };
  /// All that depends on sizes.
  struct Prepared {
    plan::Binding binding;
    plan::Running running = plan::Running::side_by_side;
    PlanProgram program;
    std::vector<BoundLaunch> launches;              ///< by node
    std::vector<std::vector<std::uint32_t>> after;  ///< by node; nodes count from the first of their part
    std::vector<std::uint32_t> part_ends;           ///< nodes before the end of each part, which is a graph
    std::vector<std::uint32_t> user_nodes;          ///< kernels of the program's own
    std::vector<std::vector<Use>> of_input, of_output, of_slot;
    Ref<Buffer> block, scratch, status, cells;
    std::vector<std::uint64_t> cell_values;  ///< parameters first, then sizes, then numbers of kernels
    std::vector<std::vector<std::uint32_t>> number_cells_of;  ///< by slot: places in `cell_values`
    // What the launches hold now.
    std::vector<std::byte*> inputs, outputs;
    std::vector<std::uint64_t> parameters;
  };

  [[nodiscard]] Products products() const;
  [[nodiscard]] Result<void> make_program(Prepared& to, std::span<const std::uint8_t> alignments);
  [[nodiscard]] Result<void> check_memory(const Prepared& prepared) const;
  [[nodiscard]] Result<void> take_memory(Prepared& to);
  [[nodiscard]] Result<void> upload_constants();
  [[nodiscard]] Result<void> bind_launches(Prepared& to);
  [[nodiscard]] std::uint64_t fixed_value(const Prepared& of, const PlanArgument& argument) const;
  void note_use(Prepared& to, const PlanArgument& argument, Use use) const;
  [[nodiscard]] Result<void> follow_alignments(const runtime::Launch& launch);
  void follow_addresses(const runtime::Launch& launch);
  [[nodiscard]] Result<void> follow_numbers(const runtime::Launch& launch);
  [[nodiscard]] Result<void> follow_code();
  [[nodiscard]] Result<FunctionRef> user_function(const PlanNode& node);
  void set_value(Use use, std::uint64_t value);
  [[nodiscard]] Result<void> upload_cells();
  [[nodiscard]] Result<void> run_parts();
  [[nodiscard]] Result<void> update_graph(std::size_t part);
  [[nodiscard]] Result<void> run_driven(plan::StepId step);
  [[nodiscard]] std::byte* address_now(plan::ValueId value) const;
  [[nodiscard]] std::uint32_t part_begin(std::size_t part) const {
    return part == 0 ? 0 : prepared_.part_ends[part - 1];
  }
  [[nodiscard]] Result<void> run_timed(std::vector<TimedStep>& times);
  [[nodiscard]] Result<void> read_statuses();

  std::shared_ptr<CudaDevice> device_;
  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  std::vector<Ref<Buffer>> constants_;  ///< on the device; made with the first sizes
  Prepared prepared_;
  std::shared_ptr<const Stream> capturing_;
  std::vector<std::unique_ptr<ResidentGraph>> graphs_;  ///< by part
  bool is_stale_ = true;                                ///< the graphs are of other sizes, or not there
  std::vector<std::uint32_t> changed_;                  ///< nodes whose launches are not what the graphs hold
  GraphUpdate last_update_;
  std::chrono::nanoseconds update_time_{};  ///< of the last run
};

}  // namespace tessera::runtime::cuda
