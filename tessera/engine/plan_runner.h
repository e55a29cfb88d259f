// Runs a program that was not made by an engine's own evaluations: one from a file, or one that is compiled
// as a whole. Tensors in, tensors out.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/engine/profiler.h"
#include "tessera/plan/package.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

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

/// One thread at a time.
class PlanRunner {
 public:
  /// With flags, a program is loaded when it first runs; with `make` it is made then, and those in the
  /// package have no parts. REQUIRES that `device` lives as long as the runner.
  [[nodiscard]] static Result<PlanRunner> create(plan::Package package, runtime::Device& device,
                                                 RunLimits limits = {}, MakeProgram make = {});

  /// Its programs have no parts where they are not made yet.
  [[nodiscard]] const plan::Package& package() const { return package_; }
  /// Loads a program as a run would, and makes it if it must be.
  [[nodiscard]] Result<const plan::Program*> load(std::size_t variant);

  /// The outputs for inputs of any sizes that the plan allows. `parameters` are by slot, as ir::number_bits;
  /// those left out have the values they were written with. `sizes` are for symbols that do not follow from
  /// the inputs. A run that fails leaves the states as they were.
  [[nodiscard]] Result<std::vector<op::HostTensor>> run(std::span<const op::HostTensor> inputs,
                                                        std::span<const std::uint64_t> parameters = {},
                                                        std::span<const std::int64_t> sizes = {});

  /// Measures runs from now on, and forgets those that were measured.
  void set_profiling(ProfilingLevel level) { profiler_->start(level); }
  [[nodiscard]] Profile profile() const { return profiler_->profile(); }

 private:
  struct Part {
    std::unique_ptr<runtime::Executable> executable;
    std::vector<std::int64_t> sizes;  ///< that it is prepared for
    std::vector<op::Layout> layouts;  ///< of its inputs, likewise
    bool is_prepared = false;
  };
  using Tensors = std::vector<op::HostTensor>;
  /// What a run was given.
  struct Given {
    std::size_t variant = 0;
    Tensors inputs;  ///< without flags
    std::span<const std::uint64_t> parameters;
  };

  PlanRunner() = default;
  [[nodiscard]] const plan::Program& program(std::size_t variant) const { return package_.programs[variant]; }
  [[nodiscard]] const plan::Plan& plan(std::size_t variant, std::size_t p) const {
    return *program(variant).parts[p].plan;
  }
  [[nodiscard]] Result<void> make_states();
  [[nodiscard]] Error wrong_input(std::size_t i, const op::HostTensor& given,
                                  const op::ValueType& expected) const;
  [[nodiscard]] Result<Given> given(std::span<const op::HostTensor> inputs,
                                    std::span<const std::uint64_t> parameters) const;
  /// The sizes that inputs of these shapes mean. Fails, naming the input and what was expected, if a dtype, a
  /// rank or a size does not fit, or if a size neither follows from them nor is among those given by symbol.
  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_of(const Given& given,
                                                           std::span<const std::int64_t> known) const;
  [[nodiscard]] std::vector<std::uint64_t> parameter_bits(const plan::Plan& plan,
                                                          std::span<const std::uint64_t> parameters) const;
  [[nodiscard]] Result<std::int64_t> learned_size(const ir::Var& dim, const plan::LearnedSize& size,
                                                  const op::HostTensor& from) const;
  [[nodiscard]] std::string places_of(std::size_t variant, const op::Dim& size) const;
  [[nodiscard]] Error with_places(std::size_t variant, const plan::Plan& plan,
                                  std::span<const std::int64_t> sizes, Error error) const;
  [[nodiscard]] Result<void> prepare(const Given& given, std::size_t p, std::vector<std::int64_t> sizes,
                                     std::span<const op::HostTensor> inputs);
  [[nodiscard]] Result<void> check_work(const plan::Plan& plan, std::span<const std::int64_t> sizes) const;
  [[nodiscard]] Result<Tensors> run_parts(const Given& given, std::span<const std::int64_t> sizes,
                                          EvaluationTimes& times);
  [[nodiscard]] Result<Tensors> run_part(const Given& given, std::size_t p,
                                         std::span<const op::HostTensor> inputs, EvaluationTimes& times);
  [[nodiscard]] Result<void> launch(std::size_t variant, std::size_t p, runtime::Launch launch,
                                    EvaluationTimes& times);
  [[nodiscard]] Result<op::HostTensor> output(std::size_t variant, std::size_t p, std::size_t i,
                                              std::span<const op::HostTensor> inputs,
                                              std::span<const op::HostTensor> buffers) const;

  [[nodiscard]] Result<void> keep_states(std::span<op::HostTensor> outputs);

  plan::Package package_;
  std::shared_ptr<runtime::MemoryPool> pool_;
  runtime::Device* device_ = nullptr;
  MakeProgram make_;
  std::vector<std::size_t> taken_;        ///< inputs of the package that are no flags
  std::vector<std::vector<Part>> parts_;  ///< by variant; none where it is not loaded
  std::unique_ptr<Profiler> profiler_ = std::make_unique<Profiler>();
  RunLimits limits_;
  Tensors states_;  // what the next run takes of what this one gave
};

}  // namespace tessera::engine
