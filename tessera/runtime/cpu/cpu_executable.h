// A plan on the CPU: its steps with everything prepared that does not change from launch to launch.
#pragma once

#include <optional>
#include <vector>

#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/cpu/row_bands.h"
#include "tessera/runtime/cpu/schedule.h"
#include "tessera/runtime/host_executable.h"

namespace tessera::runtime::cpu {

class BodyRuns;

class CpuExecutable final : public HostExecutable {
 public:
  /// `depth` is how many regions the plan is inside of.
  CpuExecutable(std::shared_ptr<CpuDevice> device, plan::PlanRef plan, std::shared_ptr<MemoryPool> pool,
                unsigned depth = 0);
  ~CpuExecutable() override;

  /// The waves of the sizes it is prepared for; none if all steps run in turn.
  [[nodiscard]] const std::vector<Wave>& waves() const { return waves_; }
  /// Works that threads run block of rows by block of rows, if they do so where it is predicted.
  struct RowStretch {
    std::size_t begin = 0, end = 0;
    bool goes_by_rows = false;      ///< false: the works are run in turn
    std::int64_t rows_at_once = 0;  ///< in the last launch; 0: its works were run in turn

    bool operator==(const RowStretch&) const = default;
  };
  /// A chain over rows with its stretches, which are known from the first launch on.
  struct BandRun {
    RowBand band;
    std::size_t begin = 0, end = 0;  ///< works
    std::vector<RowStretch> stretches;
  };
  [[nodiscard]] const std::vector<BandRun>& bands() const { return now_.bands; }

 protected:
  [[nodiscard]] Result<void> run_work(std::size_t index, HostWork& work) override;
  [[nodiscard]] Result<void> run_works() override;
  [[nodiscard]] Result<void> assign_memory(plan::Binding& binding) override;
  void sizes_changed() override;
  void addresses_changed() override;
  void put_aside() override;
  void exchange(std::size_t aside) override { std::swap(now_, aside_[aside]); }
  void copy(const HostWork& work) override;

 private:
  /// What was prepared for a step, wherever its arrays lie.
  struct StepRun {
    std::vector<std::uint64_t> parameters;
    LibraryCallRef library;
    std::int64_t row_block = 0;        ///< in a chain over rows
    std::unique_ptr<BodyRuns> bodies;  ///< of a region
    /// A kernel that sees an input in an order that its strides do not allow reads a copy.
    std::vector<op::HostTensor> copies;
  };
  /// A kernel on its arrays.
  struct StepJob {
    CompiledJob job;
    bool is_ready = false;
    std::vector<op::Array> inputs;  ///< with the copies, if there are some
  };
  /// A kernel that needs nothing but its code, side by side with others: a plan of many small steps takes as
  /// long as reading what was prepared for them.
  struct PlainRun {
    RowFunction code = nullptr;  ///< null: not such a kernel, or an address has changed
    Frame frame;
  };
  /// What was prepared for one set of addresses.
  struct Placed {
    std::vector<StepJob> jobs;    ///< by work
    std::vector<PlainRun> plain;  ///< by work; for launches without waves
    std::vector<BandRun> bands;
    std::uint64_t improvements = 0;  ///< of the device's code that its jobs have taken over
  };
  /// Where a step runs: on one thread, or on all.
  struct Place {
    bool is_one_thread = false;
    unsigned thread = 0;
  };

  [[nodiscard]] bool run_side_by_side(std::vector<Wave> waves, std::uint64_t most, plan::Binding& binding);
  void run_bands(std::uint64_t most, plan::Binding& binding);
  void follow_improvements();
  void even_out_scratch();
  [[nodiscard]] Result<void> run_in_turn();
  [[nodiscard]] Result<void> run_in_turn(std::size_t begin, std::size_t end);
  [[nodiscard]] Result<void> run_band(BandRun& run);
  [[nodiscard]] Result<void> find_stretches(BandRun& run);
  [[nodiscard]] Result<bool> goes_by_rows(std::size_t index, RowMemory& memory);
  [[nodiscard]] Result<void> run_stretch(const RowBand& found, RowStretch& stretch);
  [[nodiscard]] Result<std::int64_t> begin_stretch(const RowBand& band, const RowStretch& stretch);
  [[nodiscard]] Result<void> run_begun(std::size_t index);
  [[nodiscard]] Result<void> run_rows(std::size_t index, const RowBand& band, kernel::ItemRange blocks,
                                      unsigned thread);
  [[nodiscard]] Result<void> run_step(std::size_t index, Place place);
  [[nodiscard]] Result<void> run_task(const Task& task, Place place);
  [[nodiscard]] Result<void> run_wave(const Wave& wave);
  [[nodiscard]] Result<void> run_call(const HostWork& work);
  [[nodiscard]] Result<void> run_region(StepRun& run, const HostWork& work);
  [[nodiscard]] Result<void> run_library(const LibraryForm& form, StepRun& run, const HostWork& work,
                                         Place place);
  [[nodiscard]] Result<void> run_kernel(CompiledKernel& kernel, std::size_t index, Place place);
  [[nodiscard]] LibraryLaunch library_launch(const LibraryForm& form, const HostWork& work) const;
  [[nodiscard]] Result<void> begin_library(const LibraryForm& form, StepRun& run, const HostWork& work);
  [[nodiscard]] Result<void> begin_kernel(CompiledKernel& kernel, std::size_t index);
  void make_ready_together();
  void try_to_make_ready(std::size_t index);
  [[nodiscard]] Result<void> make_ready(const LibraryForm& form, StepRun& run, const HostWork& work);
  [[nodiscard]] Result<void> make_ready(CompiledKernel& kernel, std::size_t index);
  [[nodiscard]] Result<void> prepare_kernel(CompiledKernel& kernel, std::size_t index);
  [[nodiscard]] Result<void> make_copies(StepRun& run, const HostWork& work);
  [[nodiscard]] StepTime time_of(const plan::Step& step, double work) const;

  std::shared_ptr<CpuDevice> device_;
  std::shared_ptr<MemoryPool> pool_;
  unsigned depth_;
  std::vector<std::shared_ptr<CompiledKernel>> kernels_;  ///< by step; null where there is none
  std::vector<std::optional<LibraryForm>> libraries_;     ///< by step
  std::vector<StepRun> runs_;                             ///< by work
  Placed now_;
  std::vector<Placed> aside_;
  std::uint8_t plain_failed_ = 0;
  unsigned launches_ = 0;                 ///< up to those that make it hot
  std::vector<kernel::Scratch> scratch_;  ///< by thread
  std::vector<Wave> waves_;
  std::vector<RowBand> row_bands_;
  std::vector<std::uint32_t> work_of_;  ///< by step: its work; none for a view
};

}  // namespace tessera::runtime::cpu
