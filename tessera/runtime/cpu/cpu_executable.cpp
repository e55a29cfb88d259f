#include "tessera/runtime/cpu/cpu_executable.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Points of an iteration space below which waking a thread costs more than it saves.
constexpr std::int64_t points_for_threads = 32'768;
/// Pieces per thread: some threads are late.
constexpr std::int64_t pieces_per_thread = 4;

}  // namespace

CpuExecutable::CpuExecutable(std::shared_ptr<CpuDevice> device, plan::PlanRef plan,
                             std::shared_ptr<MemoryPool> pool)
    : HostExecutable(std::move(plan), std::move(pool)),
      device_(std::move(device)),
      scratch_(device_->threads().size()) {
  for (const plan::Step& step : this->plan().steps) {
    kernels_.push_back(step.kernel == nullptr ? nullptr : device_->compiled(*step.kernel));
    libraries_.push_back(library_form(step));
  }
}

void CpuExecutable::sizes_changed() {
  runs_.clear();
  runs_.resize(works().size());
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (const auto& kernel = step_of(works()[i]).kernel) runs_[i].parameters.resize(kernel->slots.size());
}

Result<void> CpuExecutable::run_work(std::size_t index, HostWork& work, bool moved) {
  if (CompiledKernel* kernel = kernels_[work.step].get())
    return run_kernel(*kernel, runs_[index], work, moved);
  if (const auto& form = libraries_[work.step]) return run_library(*form, runs_[index], work);
  return step_of(work).kind == plan::StepKind::call ? run_call(work) : run_by_ops(work);
}

Result<void> CpuExecutable::run_call(const HostWork& work) {
  for (const op::Array& result : work.results) clear(result);
  return device_->run(call_of(work), work.inputs, work.results);
}

Result<void> CpuExecutable::run_library(const LibraryForm& form, KernelRun& run, const HostWork& work) {
  if (run.library == nullptr)
    run.library = TESSERA_TRY(make_library_call(form, work.inputs, work.results, device_->libraries()));
  LibraryLaunch launch{.inputs = work.inputs, .results = work.results, .numbers = numbers(), .weights = {}};
  if (form.right != no_input) {
    const plan::ValueId weights = step_of(work).inputs[form.right];
    launch.weights.is_constant = binding().places[weights].where == plan::Where::constant;
    launch.weights.buffer = buffer_of(work, form.right);
  }
  TESSERA_TRY(run.library->begin(launch));
  return run_items(*run.library, device_->threads(), scratch_);
}

Result<void> CpuExecutable::prepare_kernel(CompiledKernel& kernel, KernelRun& run, const HostWork& work) {
  if (run.inputs.empty()) {
    auto done = kernel.prepare(work.inputs, work.results, run.job);
    const bool is_contiguous = std::all_of(work.inputs.begin(), work.inputs.end(),
                                           [](const op::Array& a) { return a.layout.is_contiguous(); });
    if (done || is_contiguous) return done;
    for (const op::Array& input : work.inputs) {
      const bool is_copied = !input.layout.is_contiguous();
      run.copies.push_back(is_copied ? TESSERA_TRY(op::HostTensor::allocate(input.dtype, input.shape()))
                                     : op::HostTensor());
    }
    run.inputs = work.inputs;
  }
  for (std::size_t i = 0; i < run.inputs.size(); ++i)
    run.inputs[i] = work.inputs[i].layout.is_contiguous() ? work.inputs[i] : run.copies[i].array();
  return kernel.prepare(run.inputs, work.results, run.job);
}

Result<void> CpuExecutable::run_kernel(CompiledKernel& kernel, KernelRun& run, const HostWork& work,
                                       bool moved) {
  if (moved || !run.is_ready) {
    run.is_ready = false;
    TESSERA_TRY(prepare_kernel(kernel, run, work));
    run.is_ready = true;
  }
  for (std::size_t i = 0; i < run.copies.size(); ++i)
    if (!work.inputs[i].layout.is_contiguous()) op::copy_elements(work.inputs[i], run.copies[i].array());
  // Which parameters of the plan these are is the step's affair: one kernel serves several.
  for (std::size_t i = 0; i < run.parameters.size(); ++i)
    run.parameters[i] = numbers()[step_of(work).kernel->slots[i]];
  const kernel::Job& job = run.job.job;
  const auto threads = static_cast<std::int64_t>(device_->threads().size());
  if (run.job.points < points_for_threads || threads == 1) {
    kernel.run(run.job, run.parameters, {0, job.items}, scratch_[0]);
    return {};
  }
  const std::int64_t piece = std::max<std::int64_t>(1, job.items / (threads * pieces_per_thread));
  device_->threads().run(job.items, piece, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
    kernel.run(run.job, run.parameters, {begin, end}, scratch_[thread]);
  });
  return {};
}
