// Runs a program that was not made by an engine's own evaluations: a model, one from a file, or one that is
// compiled as a whole. Values are read where they lie and stay in the memory of the device; tensors of the
// host are copied there and back where it has memory of its own.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/small_vector.h"
#include "tessera/engine/plan_instance.h"
#include "tessera/engine/profiler.h"
#include "tessera/engine/report.h"
#include "tessera/plan/package.h"

namespace tessera::engine {

class Engine;

/// What one run may take.
struct RunLimits {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();  ///< of values that live at once
  /// Multiply-adds, about: of each part before it begins, where they follow from the sizes, and of all that
  /// bodies of regions do.
  double work = std::numeric_limits<double>::infinity();
  double seconds = std::numeric_limits<double>::infinity();  ///< looked at in loops and between steps

  [[nodiscard]] bool has_time_or_work() const {
    constexpr double none = std::numeric_limits<double>::infinity();
    return work != none || seconds != none;
  }
};

/// Makes the program for these values of the flags.
using MakeProgram = std::function<Result<plan::Program>(std::size_t variant)>;

/// A value in the memory of the device that somebody else keeps.
struct ValueView {
  op::Dtype dtype = op::Dtype::f32;
  const runtime::Storage* storage = nullptr;

  [[nodiscard]] const op::Extents& shape() const { return storage->layout.shape; }
};

/// A value in the memory of the device.
struct StoredValue {
  op::Dtype dtype = op::Dtype::f32;
  runtime::Storage storage;

  [[nodiscard]] ValueView view() const { return {dtype, &storage}; }
};

/// Thread-safe: each call that runs at the same time has an instance of its own. Calls of a program with
/// states run one after another.
class PlanRunner {
 public:
  /// With flags, a program is loaded when it first runs; with `make` it is made then, and those in the
  /// package have no parts. REQUIRES that `device` lives as long as the runner.
  [[nodiscard]] static Result<PlanRunner> create(plan::Package package, runtime::Device& device,
                                                 RunLimits limits = {}, MakeProgram make = {});
  /// The same on the device and in the memory of an engine: runs are among what it reports, counts and
  /// profiles, `name` says of what. REQUIRES that it lives as long as the runner.
  [[nodiscard]] static Result<PlanRunner> create(plan::Package package, Engine& engine, std::string name,
                                                 RunLimits limits = {}, MakeProgram make = {});

  /// Its programs have no parts where they are not made yet.
  [[nodiscard]] const plan::Package& package() const { return package_; }
  /// Loads a program as a run would, and makes it if it must be.
  [[nodiscard]] Result<const plan::Program*> load(std::size_t variant);

  /// The outputs for inputs of any sizes that the plan allows. `parameters` are by slot, as ir::number_bits;
  /// those left out have the values they were written with. `sizes` are for symbols that do not follow from
  /// the inputs. An output may share the storage of an input. A run that fails leaves the states as they
  /// were.
  [[nodiscard]] Result<std::vector<StoredValue>> run(std::span<const ValueView> inputs,
                                                     std::span<const std::uint64_t> parameters = {},
                                                     std::span<const std::int64_t> sizes = {});
  /// The same for tensors of the host: without gaps, and never memory of the caller or of a state.
  [[nodiscard]] Result<std::vector<op::HostTensor>> run(std::span<const op::HostTensor> inputs,
                                                        std::span<const std::uint64_t> parameters = {},
                                                        std::span<const std::int64_t> sizes = {});

  /// Measures runs from now on, and forgets those that were measured.
  void set_profiling(ProfilingLevel level) { profiler_->start(level); }
  [[nodiscard]] Profile profile() const { return profiler_->profile(); }

 private:
  using Values = std::vector<StoredValue>;
  /// What one call at a time uses: the parts of a variant, and memory that the next call uses again.
  struct Instance {
    std::vector<std::unique_ptr<PlanInstance>> parts;
    std::vector<std::int64_t> shapes;  ///< of the inputs, and sizes that were said, that `sizes` are for
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> words, symbols;
    std::vector<std::uint64_t> parameters;
    std::vector<Values> results;  ///< by part
    std::vector<ComponentReport> reports;
    LaunchOutcome outcome;
  };
  using InstanceRef = std::unique_ptr<Instance>;
  /// What a run was given.
  struct Given {
    std::size_t variant = 0;
    SmallVector<ValueView, 8> inputs;  ///< without flags
    std::span<const std::uint64_t> parameters;
    std::span<const std::int64_t> sizes;
  };
  /// One run.
  struct Run {
    const Given& given;
    Instance& instance;
    EvaluationTimes& times;
  };
  struct Locks {
    std::mutex instances;  ///< guards `idle_` and the making of programs
    std::mutex states;
  };

  PlanRunner() = default;
  [[nodiscard]] Result<void> begin(plan::Package package, runtime::Device& device, RunLimits limits,
                                   MakeProgram make);
  [[nodiscard]] const plan::Program& program(std::size_t variant) const { return package_.programs[variant]; }
  [[nodiscard]] Result<void> make_states();
  [[nodiscard]] Result<void> make(std::size_t variant);
  [[nodiscard]] Result<InstanceRef> new_instance(std::size_t variant);
  [[nodiscard]] Result<InstanceRef> take_instance(std::size_t variant);
  void give_back(std::size_t variant, InstanceRef instance) noexcept;
  [[nodiscard]] Error wrong_input(std::size_t i, const ValueView& given, const op::ValueType& expected) const;
  [[nodiscard]] Result<bool> flag_value(const plan::Flag& flag, const ValueView& given) const;
  [[nodiscard]] Result<void> take_inputs(std::span<const ValueView> inputs, Given& out) const;
  /// The sizes that inputs of these shapes mean. Fails, naming the input and what was expected, if a dtype, a
  /// rank or a size does not fit, or if a size neither follows from them nor is among those given by symbol.
  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_of(const Given& given) const;
  [[nodiscard]] Result<void> find_sizes(Run& run) const;
  [[nodiscard]] std::span<const std::uint64_t> parameter_bits(Run& run, const plan::Plan& plan) const;
  [[nodiscard]] Result<std::int64_t> learned_size(const ir::Var& dim, const plan::LearnedSize& size,
                                                  const ValueView& from) const;
  [[nodiscard]] std::string places_of(std::size_t variant, const op::Dim& size) const;
  [[nodiscard]] Error with_places(std::size_t variant, const plan::Plan& plan,
                                  std::span<const std::int64_t> sizes, Error error) const;
  [[nodiscard]] ValueView value(const Run& run, const plan::Source& source) const;
  [[nodiscard]] Result<void> prepare(Run& run, PlanInstance& part);
  [[nodiscard]] Result<void> check_work(const plan::Plan& plan, std::span<const std::int64_t> sizes) const;
  [[nodiscard]] Result<void> check_memory(const plan::Binding& binding) const;
  [[nodiscard]] Result<void> learn_sizes(Run& run, const plan::Part& part) const;
  [[nodiscard]] Result<Values> run_parts(Run& run);
  [[nodiscard]] Result<void> run_part(Run& run, std::size_t p);
  [[nodiscard]] Result<void> launch(Run& run, PlanInstance& part);
  [[nodiscard]] Result<Values> run_variant(const Given& given, EvaluationTimes& times);
  void report(Run& run, std::size_t p, std::chrono::steady_clock::time_point begin) const;
  [[nodiscard]] Result<StoredValue> stored(const op::HostTensor& tensor) const;
  [[nodiscard]] Result<op::HostTensor> fetched(const StoredValue& value, bool is_own) const;

  plan::Package package_;
  std::string name_;
  Engine* engine_ = nullptr;  ///< null: it has a pool and a profiler of its own
  std::shared_ptr<runtime::MemoryPool> pool_;
  runtime::Device* device_ = nullptr;
  MakeProgram make_;
  std::vector<std::size_t> taken_;              ///< inputs of the package that are no flags
  std::vector<std::vector<InstanceRef>> idle_;  ///< by variant
  std::vector<std::optional<Error>> refused_;   ///< by variant: why it cannot be made
  std::unique_ptr<Profiler> own_profiler_ = std::make_unique<Profiler>();
  Profiler* profiler_ = own_profiler_.get();
  RunLimits limits_;
  bool keeps_copies_ = true;
  Values states_;  // what the next run takes of what this one gave
  std::unique_ptr<Locks> locks_ = std::make_unique<Locks>();
};

}  // namespace tessera::engine
