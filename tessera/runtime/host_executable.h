// What executables on the host share: where values lie, numbers in their cells, regions, and the walk over
// the steps. A device adds how it runs a call or a kernel.
#pragma once

#include <vector>

#include "tessera/base/run_meter.h"
#include "tessera/op/interpreter.h"
#include "tessera/runtime/executable.h"
#include "tessera/runtime/memory_pool.h"
#include "tessera/runtime/number_cell.h"

namespace tessera::runtime {

/// A step that computes, with its arrays.
struct HostWork {
  plan::StepId step = 0;
  std::vector<op::Array> inputs;
  std::vector<op::Array> results;
  bool is_copy = false;
  bool moved = true;  ///< an address is not what it was when this last ran
};

class HostExecutable : public Executable {
 public:
  HostExecutable(plan::PlanRef plan, std::shared_ptr<MemoryPool> pool)
      : plan_(std::move(plan)), pool_(std::move(pool)) {}

  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) override;
  [[nodiscard]] const plan::Binding& binding() const override { return binding_; }
  /// What prepare() would bind, without memory. REQUIRES that it is not prepared yet.
  [[nodiscard]] Result<plan::Binding> find_binding(std::span<const std::int64_t> sizes,
                                                   std::span<const op::Layout> inputs);
  [[nodiscard]] Result<void> run(const Launch& launch) override;

 protected:
  /// Runs one call, kernel or function. `index` counts the works.
  [[nodiscard]] virtual Result<void> run_work(std::size_t index, HostWork& work) = 0;
  /// Runs all works, whose addresses are set; one after the other if a device does not know better.
  [[nodiscard]] virtual Result<void> run_works();
  /// Decides how steps run with the sizes of a binding, and where values lie so that they can; here: one by
  /// one.
  [[nodiscard]] virtual Result<void> assign_memory(plan::Binding& binding) {
    plan::assign_buffers(*plan_, binding);
    return {};
  }
  /// There are new sizes.
  virtual void sizes_changed() {}
  /// Some works have `moved`.
  virtual void addresses_changed() {}
  /// What a device has prepared for the addresses that works have now is put aside, behind what was put aside
  /// before; a copy of it follows the works to other addresses. Changes nothing if memory for it is refused.
  virtual void put_aside() {}
  /// What is prepared changes places with what was put aside as number `aside`. The works have done so.
  virtual void exchange(std::size_t /*aside*/) {}
  /// Runs one work, whatever it is.
  [[nodiscard]] Result<void> run_any(std::size_t index);
  /// Whether the launch asks when works ran.
  [[nodiscard]] bool is_timed() const { return !times_.empty(); }

  /// Ends a work that has run: its error gets the line of its step.
  [[nodiscard]] Result<void> finished(const HostWork& work, Result<void> done) const;
  /// What `run` returns, which runs a work on a thread of the device. When it did is noted if the launch
  /// asks; several threads may do so, each for other works.
  template <class F>
  [[nodiscard]] Result<void> noted(std::size_t index, unsigned thread, F&& run) {
    TESSERA_TRY(RunMeter::check());
    if (times_.empty()) return run();
    TimedStep& time = times_[index];
    time.thread = thread;
    time.begin = TimedStep::Clock::now();
    Result<void> done = run();
    time.end = TimedStep::Clock::now();
    return done;
  }
  /// Copies the input of a copy, on all threads if a device has some.
  virtual void copy(const HostWork& work) { op::copy_elements(work.inputs[0], work.results[0]); }

  /// How the body of a region is run (op/interpreter.h).
  using RunBody = decltype(op::InterpreterOptions::run_body);
  /// Runs the ops that a function or a kernel stands for by the reference, its bodies by `run_body` if there
  /// is one.
  [[nodiscard]] Result<void> run_by_ops(const HostWork& work, RunBody run_body = {}) const;

  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }
  [[nodiscard]] const plan::Step& step_of(const HostWork& work) const { return plan_->steps[work.step]; }
  [[nodiscard]] op::CallInfo call_of(const HostWork& work) const {
    return {*step_of(work).card, binding_.input_types[work.step], binding_.attributes[work.step]};
  }
  [[nodiscard]] std::span<HostWork> works() { return now_.works; }
  /// The buffer that an input of a work lies in; null if it is none, or not known.
  [[nodiscard]] const Buffer* buffer_of(const HostWork& work, std::size_t input) const;
  /// The parameters of the launch, by slot.
  [[nodiscard]] std::span<const std::uint64_t> numbers() const { return numbers_; }

 private:
  void add_work(plan::StepId step);
  void set_parameters(const Launch& launch);
  [[nodiscard]] std::byte* address(plan::ValueId value, const Launch& launch);
  void set_addresses(HostWork& work, const Launch& launch);
  void follow_addresses(const Launch& launch);
  [[nodiscard]] bool exchange_known(const Launch& launch);
  void make_room();
  void exchange_works(std::size_t aside);

  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  plan::Binding binding_;
  /// Works on the arrays of one launch.
  struct Placed {
    std::vector<HostWork> works;
    bool have_moved = true;             ///< some of them
    std::vector<std::byte*> addresses;  ///< inputs, then outputs

    [[nodiscard]] bool are_of(const Launch& launch) const;
  };
  Placed now_;
  /// A loop that computes its weights anew sees the same few sets of addresses in turn.
  std::vector<Placed> aside_;
  std::size_t next_aside_ = 0;  ///< whose place is taken next
  std::vector<std::uint64_t> cells_;
  std::vector<std::uint64_t> numbers_;
  std::span<const Buffer* const> buffers_;  ///< of the launch
  std::vector<TimedStep> times_;            ///< by work, of a launch that asks for them
  Ref<Buffer> scratch_;
};

/// Sets all elements to zero: what reference kernels expect of their results.
void clear(const op::Array& array);

}  // namespace tessera::runtime
