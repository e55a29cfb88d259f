// A plan on a GPU: a resident graph. A launch compares addresses and numbers with what the nodes hold, and
// patches those that hold something else; sets of addresses that come back have graphs of their own. Regions
// are nodes with bodies; one that the host has to drive stands between two graphs.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tessera/runtime/cuda/cell_table.h"
#include "tessera/runtime/cuda/code_use.h"
#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/graph_replicas.h"
#include "tessera/runtime/cuda/plan_program.h"
#include "tessera/runtime/launch_update.h"

namespace tessera::runtime::cuda {

class CudaExecutable final : public Executable, public HoldsLaunches {
 public:
  /// Nothing else uses `capturing`.
  CudaExecutable(std::shared_ptr<CudaDevice> device, plan::PlanRef plan, std::shared_ptr<MemoryPool> pool,
                 std::shared_ptr<const Stream> capturing);

  /// How the steps of a plan run: the more there are, the longer it takes to see which may share memory.
  [[nodiscard]] static plan::Running running_of(const plan::Plan& plan);

  /// Refuses sizes that need more memory than the device has, before any is taken.
  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) override;
  [[nodiscard]] const plan::Binding& binding() const override { return prepared_.binding; }
  /// Returns when the work is queued, unless indices have to be checked.
  [[nodiscard]] Result<void> run(const runtime::Launch& launch) override;

  [[nodiscard]] LaunchUpdate launch_update() const override;
  [[nodiscard]] std::string driven_by_host() const override;
  [[nodiscard]] std::uint64_t scratch_bytes() const override { return prepared_.program.scratch_bytes; }
  /// What the last run had to change.
  [[nodiscard]] const GraphUpdate& last_update() const { return last_update_; }
  [[nodiscard]] const PlanProgram& program() const { return prepared_.program; }
  [[nodiscard]] std::size_t replica_count() const { return replicas_.size(); }

 private:
  /// Where an address or a number goes.
  struct Use {
    std::uint32_t node = 0;
    std::uint32_t argument = 0;
  };
  /// What a program could not be made with, though everything else could.
  enum class Refused : std::uint8_t { nothing, ends_of_products, conditional_nodes };
  /// All that depends on sizes.
  struct Prepared {
    plan::Binding binding;
    plan::Running running = plan::Running::side_by_side;
    PlanProgram program;
    std::vector<BoundLaunch> launches;              ///< by node; until the replicas have them
    std::vector<std::vector<std::uint32_t>> after;  ///< by node; nodes count from the first of their part
    std::vector<std::uint32_t> part_ends;           ///< nodes before the end of each part, which is a graph
    std::vector<CodeUse> code;                      ///< kernels of the program's own, by node
    std::vector<std::vector<Use>> of_input, of_output, of_slot;
    Ref<Buffer> block, scratch, cells;
    std::shared_ptr<const PinnedMemory> statuses;  ///< of the host: kernels write if something is wrong
    std::vector<Ref<Buffer>> body_constants;
    CellTable cell_table;        ///< what `cells` holds
    bool holds_numbers = false;  ///< nodes do
    Refused refused = Refused::nothing;
  };

  [[nodiscard]] Products products(const plan::Plan& plan);
  [[nodiscard]] Result<void> make_program(Prepared& to, std::span<const std::uint8_t> alignments);
  [[nodiscard]] Result<void> try_program(Prepared& to, std::span<const std::uint8_t> alignments);
  [[nodiscard]] Result<void> check_memory(const Prepared& prepared) const;
  [[nodiscard]] Result<void> take_memory(Prepared& to);
  [[nodiscard]] Result<void> upload_constants(const PlanProgram& program);
  [[nodiscard]] Result<void> rebuild(std::span<const std::uint8_t> alignments);
  [[nodiscard]] Result<void> bind_launches(Prepared& to);
  [[nodiscard]] Result<std::vector<FunctionRef>> functions_of(Prepared& to);
  [[nodiscard]] Result<BlasProductRef> product_of(Prepared& to, const PlanNode& node);
  [[nodiscard]] std::uint64_t fixed_value(const Prepared& of, const PlanArgument& argument) const;
  void note_use(Prepared& to, const PlanArgument& argument, Use use) const;
  void take_over(Prepared next);
  [[nodiscard]] std::uint8_t alignment_of_input(const runtime::Launch& launch, std::size_t i) const;
  [[nodiscard]] Result<void> follow_alignments(const runtime::Launch& launch);
  void follow_addresses(const runtime::Launch& launch);
  void follow_numbers(const runtime::Launch& launch);
  void follow_library();
  [[nodiscard]] Result<void> follow_cells(const runtime::Launch& launch);
  [[nodiscard]] Result<void> follow_code();
  [[nodiscard]] Result<FunctionRef> user_function(const PlanNode& node);
  static void set_value(GraphReplica& replica, Use use, std::uint64_t value);
  [[nodiscard]] bool has_conditionals() const { return without_conditionals_.empty(); }
  [[nodiscard]] bool has_driven() const { return !prepared_.program.driven.empty(); }
  [[nodiscard]] Result<void> follow(const runtime::Launch& launch);
  /// The graphs, or their twins, do what the launches of the current replica say.
  [[nodiscard]] Result<void> update(const runtime::Launch& launch);
  [[nodiscard]] Result<void> update_graphs();
  [[nodiscard]] Result<void> set_twins();
  [[nodiscard]] Result<void> run_parts();
  [[nodiscard]] Result<void> update_graph(GraphReplica& replica, std::size_t part);
  [[nodiscard]] Result<void> run_driven(plan::StepId step);
  [[nodiscard]] std::byte* address_now(plan::ValueId value) const;
  [[nodiscard]] std::uint32_t part_begin(std::size_t part) const {
    return part == 0 ? 0 : prepared_.part_ends[part - 1];
  }
  [[nodiscard]] Result<void> run_timed(std::vector<TimedStep>& times);
  [[nodiscard]] Result<void> set_twin(GraphReplica& replica, std::size_t part);
  [[nodiscard]] Result<void> take_statuses(Prepared& to) const;
  /// Adds the op that a node is of, and the caller's line.
  [[nodiscard]] LaunchBlame blame_of(std::size_t part) const;
  [[nodiscard]] Result<void> read_statuses();

  std::shared_ptr<CudaDevice> device_;
  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  std::vector<Ref<Buffer>> constants_;  ///< of the plan, on the device; made with the first sizes
  /// By where they lie on the host, and how many bytes they have: one without elements lies where the next
  /// one begins.
  std::map<std::pair<const std::byte*, std::size_t>, Ref<Buffer>> body_constants_;
  Prepared prepared_;
  std::shared_ptr<const Stream> capturing_;
  GraphReplicas replicas_;
  BodyPlans bodies_;
  bool awaits_products_ = false;      ///< the program computes products by kernels until the library is there
  bool library_has_ends_ = true;      ///< as far as is known
  std::string without_conditionals_;  ///< why regions are no nodes; empty: they are, as far as is known
  std::shared_ptr<const std::string> words_;  ///< what it is, for errors of the driver
  GraphUpdate last_update_;
  std::chrono::nanoseconds update_time_{};  ///< of the last run
};

}  // namespace tessera::runtime::cuda
