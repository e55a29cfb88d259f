#include "tessera/runtime/cpu/cpu_executable.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>

#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/plan/work.h"
#include "tessera/runtime/cpu/body_runs.h"
#include "tessera/runtime/cpu/shared_copy.h"
#include "tessera/runtime/cpu/single_call.h"
#include "tessera/runtime/cpu/thrown_error.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Points of an iteration space below which waking a thread costs more than it saves. What a thread has
/// computed lies in its cache: it is faster to go on there, too.
constexpr std::int64_t points_for_threads = 16'384;
/// Pieces per thread: some threads are late.
constexpr std::int64_t step_pieces_per_thread = 4;
/// Memory that may be used at the same time cannot be shared, and finding out which takes the square of it.
constexpr std::size_t most_scheduled_steps = 4096;

/// Works that are worth waking threads for before a first launch.
constexpr std::size_t least_made_together = 8;

/// Launches after which better code pays.
constexpr unsigned launches_until_hot = 8;

/// Regions inside of each other that are plans; deeper ones are the reference's.
constexpr unsigned most_planned_depth = 16;

constexpr std::uint32_t no_work = 0xffffffff;

/// What runs side by side, or row by row, holds more values at once. It may where that takes little more than
/// the steps in turn must, or little at all.
std::uint64_t most_scratch(const MemoryLayout& in_turn) {
  constexpr std::uint64_t always_fine = std::uint64_t{1} << 18;
  return std::max({always_fine, in_turn.bytes, in_turn.lower_bound + in_turn.lower_bound / 10});
}

/// Chains over rows are cut into blocks that stay in the caches of their threads, as long as all of them do.
std::uint64_t most_band_scratch(const MemoryLayout& in_turn) {
  constexpr std::uint64_t in_caches = std::uint64_t{1} << 20;
  return std::max(in_caches, most_scratch(in_turn));
}

/// Chains that are nearly all of the work, as many at once as there are threads, may hold twice as much.
std::uint64_t most_narrow_scratch(const MemoryLayout& in_turn, double part_side_by_side) {
  constexpr double nearly_all = 0.9;
  const std::uint64_t most = most_scratch(in_turn);
  return part_side_by_side < nearly_all ? most : std::max(most, 2 * in_turn.lower_bound);
}

/// All items by one thread: in one go, or in pieces where a limit of the run is looked at.
template <class F>
Result<void> run_alone(std::int64_t items, const F& run) {
  constexpr std::int64_t pieces = 64;
  const bool is_limited = RunMeter::current() != nullptr;
  const std::int64_t piece = is_limited ? std::max<std::int64_t>(1, items / pieces) : items;
  for (std::int64_t begin = 0; begin < items; begin += piece) {
    TESSERA_TRY(RunMeter::check());
    TESSERA_TRY(run(kernel::ItemRange{begin, std::min(begin + piece, items)}));
  }
  return {};
}

/// The first error of several threads.
class FirstError {
 public:
  void add(Result<void> done) {
    if (done) return;
    const std::lock_guard lock(mutex_);
    if (first_) first_ = std::move(done);
  }
  Result<void> take() { return std::move(first_); }

 private:
  std::mutex mutex_;
  Result<void> first_;
};

}  // namespace

CpuExecutable::CpuExecutable(std::shared_ptr<CpuDevice> device, plan::PlanRef plan,
                             std::shared_ptr<MemoryPool> pool, unsigned depth)
    : HostExecutable(std::move(plan), pool),
      device_(std::move(device)),
      pool_(std::move(pool)),
      depth_(depth),
      scratch_(device_->threads().size()) {
  for (const plan::Step& step : this->plan().steps) {
    kernels_.push_back(step.kernel == nullptr ? nullptr : device_->compiled(step));
    libraries_.push_back(library_form(step));
    if (auto& form = libraries_.back(); form && form->activation != nullptr)
      form->epilogue.function = device_->epilogue_function(*form->activation);
  }
}

CpuExecutable::~CpuExecutable() = default;

void CpuExecutable::sizes_changed() {
  launches_ = 0;  // other sizes may need other code
  runs_.clear();
  runs_.resize(works().size());
  now_ = {};
  now_.jobs.resize(works().size());
  now_.plain.resize(works().size());
  aside_.clear();
  work_of_.assign(plan().steps.size(), no_work);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const HostWork& work = works()[i];
    work_of_[work.step] = static_cast<std::uint32_t>(i);
    if (const auto& kernel = step_of(work).kernel) runs_[i].parameters.resize(kernel->slots.size());
  }
  for (const RowBand& band : row_bands_) {
    const std::size_t begin = work_of_[band.steps.first], end = work_of_[band.steps.last] + 1;
    for (std::size_t i = begin; i < end; ++i) runs_[i].row_block = band.block;
    now_.bands.push_back({band, begin, end, {}});
  }
}

void CpuExecutable::addresses_changed() {
  now_.plain.assign(works().size(), {});
  for (BandRun& run : now_.bands) run.stretches.clear();
}

/// What is prepared stays where it is, since plain runs point into it; the copy has none yet.
void CpuExecutable::put_aside() {
  Placed copy = now_;
  copy.plain.clear();
  aside_.reserve(aside_.size() + 1);
  aside_.push_back(std::move(now_));
  now_ = std::move(copy);
}

// ---- which steps run side by side

/// Functions of the caller may not be ready for several threads.
StepTime CpuExecutable::time_of(const plan::Step& step, double work) const {
  const MachineCosts& costs = device_->costs();
  switch (step.kind) {
    case plan::StepKind::kernel:
      return {costs.begin_ns + costs.element_ns * work, true};
    case plan::StepKind::library:
      return {costs.begin_ns + costs.product_ns * work, true};
    case plan::StepKind::copy:
      return {costs.begin_ns, true};
    case plan::StepKind::call:
      return {step.card->view != nullptr ? 0 : costs.begin_ns + costs.reference_ns * work,
              op::is_in_catalogue(*step.card)};
    case plan::StepKind::function:
      break;
  }
  return {};
}

Result<void> CpuExecutable::assign_memory(plan::Binding& binding) {
  waves_.clear();
  row_bands_.clear();
  plan::assign_buffers(plan(), binding);
  if (plan().steps.size() > most_scheduled_steps) return {};
  const auto work = TESSERA_TRY(plan::work_by_step(plan(), binding.sizes));
  std::vector<StepTime> times;
  for (std::size_t s = 0; s < work.size(); ++s) times.push_back(time_of(plan().steps[s], work[s]));
  const std::uint64_t most = most_scratch(binding.memory);
  // What is run by one thread is cut as if there were two: results do not depend on the number of threads.
  const unsigned threads = std::max(device_->threads().size(), 2U);
  const auto waves = schedule(plan(), times, threads);
  if (run_side_by_side(waves, most, binding) ||
      run_side_by_side(narrowed(waves, threads),
                       most_narrow_scratch(binding.memory, part_side_by_side(waves, times)), binding))
    return {};
  row_bands_ = find_row_bands(plan(), binding, libraries_, times, device_->threads().size());
  run_bands(most_band_scratch(binding.memory), binding);
  return {};
}

/// Takes the waves if some of their tasks run side by side and their memory is not more than the most. One
/// thread runs the steps in turn, where they lie.
bool CpuExecutable::run_side_by_side(std::vector<Wave> waves, std::uint64_t most, plan::Binding& binding) {
  if (!has_side_by_side(waves)) return false;
  MemoryLayout layout = lay_out(binding.ranges, waves);
  if (layout.bytes > most) return false;
  if (device_->threads().size() == 1) return true;
  layout.lower_bound = binding.memory.lower_bound;
  plan::assign_buffers(binding, std::move(layout));
  waves_ = std::move(waves);
  return true;
}

/// Takes the chains over rows if what they hold at once is not more than the most; else the longest goes.
void CpuExecutable::run_bands(std::uint64_t most, plan::Binding& binding) {
  const std::uint64_t bound = binding.memory.lower_bound;
  const std::vector<LiveRange> in_turn = binding.ranges;
  while (!row_bands_.empty()) {
    std::vector<plan::StepSpan> spans;
    for (const RowBand& band : row_bands_) spans.push_back(band.steps);
    plan::hold_over(spans, binding);
    MemoryLayout layout = lay_out(binding.ranges, plan().steps.size());
    if (layout.bytes <= most) {
      layout.lower_bound = bound;
      return plan::assign_buffers(binding, std::move(layout));
    }
    binding.ranges = in_turn;
    row_bands_.erase(std::max_element(row_bands_.begin(), row_bands_.end(), [](const auto& a, const auto& b) {
      return a.steps.last - a.steps.first < b.steps.last - b.steps.first;
    }));
  }
}

/// What runs often gets better code, which takes its place between two launches.
void CpuExecutable::follow_improvements() {
  CodeImprover* const improver = device_->improver();
  const bool becomes_hot = launches_ < launches_until_hot && ++launches_ == launches_until_hot;
  if (becomes_hot) even_out_scratch();
  if (improver == nullptr) return;
  if (becomes_hot)
    for (const auto& kernel : kernels_)
      if (kernel != nullptr) improver->ask_for(kernel);
  const std::uint64_t now = improver->improvements();
  if (now_.improvements == now) return;
  now_.improvements = now;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (const auto& kernel = kernels_[works()[i].step]; kernel != nullptr)
      now_.jobs[i].job.code = kernel->best(now_.jobs[i].job.code);
  now_.plain.assign(works().size(), {});
}

/// A thread that had no part in the first launches must not take memory in a later one.
void CpuExecutable::even_out_scratch() {
  std::size_t most = 0;
  for (const kernel::Scratch& scratch : scratch_) most = std::max(most, scratch.size());
  for (kernel::Scratch& scratch : scratch_) scratch.reserve(most);
}

/// Code and library calls that the first launch needs, by all threads: what a kernel serves several steps is
/// made once. What fails here fails again where it is needed, and is told there.
void CpuExecutable::make_ready_together() {
  std::vector<std::size_t> first;  // works that need something of their own
  std::unordered_set<const CompiledKernel*> seen;
  for (std::size_t i = 0; i < works().size(); ++i) {
    if (works()[i].is_copy) continue;
    const CompiledKernel* const kernel = kernels_[works()[i].step].get();
    if (kernel != nullptr ? seen.insert(kernel).second : libraries_[works()[i].step].has_value())
      first.push_back(i);
  }
  if (first.size() < least_made_together || device_->threads().size() == 1) return;
  // The first thread begins in front, the others behind: while one opens the compiler, others make what needs
  // none.
  std::stable_partition(first.begin(), first.end(),
                        [&](std::size_t i) { return kernels_[works()[i].step] != nullptr; });
  device_->threads().run(static_cast<std::int64_t>(first.size()), 1,
                         [&](std::int64_t begin, std::int64_t end, unsigned) {
                           for (std::int64_t f = begin; f < end; ++f)
                             try_to_make_ready(first[static_cast<std::size_t>(f)]);
                         });
}

void CpuExecutable::try_to_make_ready(std::size_t index) {
  const HostWork& work = works()[index];
  try {
    if (CompiledKernel* kernel = kernels_[work.step].get())
      (void)make_ready(*kernel, index);
    else if (const LibraryForm& form = *libraries_[work.step]; make_ready(form, runs_[index], work))
      runs_[index].library->read_constants(library_launch(form, work));
  } catch (const std::bad_alloc&) {
    now_.jobs[index].is_ready = false;
  }
}

Result<void> CpuExecutable::run_works() {
  return thrown_as_error([&]() -> Result<void> {
    pool_->derived()->count_launch();
    if (launches_ == 0) make_ready_together();
    follow_improvements();
    if (waves_.empty()) return is_timed() ? HostExecutable::run_works() : run_in_turn();
    for (const Wave& wave : waves_) TESSERA_TRY(run_wave(wave));
    return {};
  });
}

Result<void> CpuExecutable::run_in_turn() {
  std::size_t at = 0;
  for (BandRun& run : now_.bands) {
    TESSERA_TRY(run_in_turn(at, run.begin));
    TESSERA_TRY(run_band(run));
    at = run.end;
  }
  return run_in_turn(at, now_.plain.size());
}

Result<void> CpuExecutable::run_in_turn(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const PlainRun& plain = now_.plain[i];
    if (plain.code != nullptr && RunMeter::current() == nullptr) {
      plain.code(&plain.frame);
      if (std::exchange(plain_failed_, std::uint8_t{0}) == 0) continue;
    }
    TESSERA_TRY(run_any(i));
  }
  return {};
}

Result<void> CpuExecutable::run_wave(const Wave& wave) {
  if (!wave.is_side_by_side) {
    for (const Task& task : wave.tasks) TESSERA_TRY(run_task(task, {}));
    return {};
  }
  FirstError error;
  device_->threads().run(static_cast<std::int64_t>(wave.tasks.size()), 1,
                         [&](std::int64_t begin, std::int64_t end, unsigned thread) {
                           for (std::int64_t t = begin; t < end; ++t)
                             error.add(run_task(wave.tasks[static_cast<std::size_t>(t)], {true, thread}));
                         });
  return error.take();
}

Result<void> CpuExecutable::run_task(const Task& task, Place place) {
  for (const plan::StepId step : task) {
    if (work_of_[step] == no_work) continue;
    const HostWork& work = works()[work_of_[step]];
    TESSERA_TRY(noted(work_of_[step], place.thread, [&]() -> Result<void> {
      if (!work.is_copy) return finished(work, run_step(work_of_[step], place));
      copy(work);
      return {};
    }));
  }
  return {};
}

// ---- chains over rows

Result<void> CpuExecutable::run_band(BandRun& run) {
  if (run.stretches.empty()) TESSERA_TRY(find_stretches(run));
  for (RowStretch& stretch : run.stretches)
    TESSERA_TRY(stretch.goes_by_rows ? run_stretch(run.band, stretch)
                                     : run_in_turn(stretch.begin, stretch.end));
  return {};
}

/// A work that reads other rows of the stretch before it begins another; one that goes over no rows is run
/// alone.
Result<void> CpuExecutable::find_stretches(BandRun& run) {
  std::vector<RowStretch> found;
  RowMemory memory(run.band);
  for (std::size_t i = run.begin; i < run.end; ++i) {
    if (TESSERA_TRY(goes_by_rows(i, memory)) && !found.empty() && found.back().goes_by_rows) {
      ++found.back().end;
      continue;
    }
    memory = RowMemory(run.band);
    const bool begins_rows = TESSERA_TRY(goes_by_rows(i, memory));
    found.push_back({i, i + 1, begins_rows});
  }
  for (RowStretch& stretch : found)
    stretch.goes_by_rows = stretch.goes_by_rows && stretch.end - stretch.begin > 1;
  run.stretches = std::move(found);
  return {};
}

Result<bool> CpuExecutable::goes_by_rows(std::size_t index, RowMemory& memory) {
  const HostWork& work = works()[index];
  StepRun& run = runs_[index];
  if (work.is_copy) return false;
  if (CompiledKernel* kernel = kernels_[work.step].get()) {
    TESSERA_TRY(make_ready(*kernel, index));
    return run.copies.empty() && memory.take(kernel->kernel(), now_.jobs[index].job.job, work.results);
  }
  const auto& form = libraries_[work.step];
  if (!form || (form->op != LibraryOp::matmul && form->op != LibraryOp::attention)) return false;
  TESSERA_TRY(make_ready(*form, run, work));
  return memory.take(*form, work.inputs, work.results);
}

/// The rows that all works go by in this launch, or 0: products whose weights are not packed have blocks of
/// their own, or none.
Result<std::int64_t> CpuExecutable::begin_stretch(const RowBand& band, const RowStretch& stretch) {
  std::optional<std::int64_t> of_products;
  bool agree = true;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
    const HostWork& work = works()[i];
    if (CompiledKernel* kernel = kernels_[work.step].get()) {
      TESSERA_TRY(finished(work, begin_kernel(*kernel, i)));
      continue;
    }
    TESSERA_TRY(finished(work, begin_library(*libraries_[work.step], runs_[i], work)));
    const std::int64_t rows = runs_[i].library->row_block();
    agree = agree && rows > 0 && rows == of_products.value_or(rows);
    of_products = rows;
  }
  const RowBand begun{band.steps, band.rows, of_products.value_or(band.block)};
  agree = agree && begun.blocks() >= std::min<std::int64_t>(band.blocks(), device_->threads().size());
  for (std::size_t i = stretch.begin; agree && begun.block != band.block && i < stretch.end; ++i)
    agree = runs_[i].library != nullptr || begun.has_whole_items(now_.jobs[i].job.job);
  return agree ? begun.block : 0;
}

Result<void> CpuExecutable::run_stretch(const RowBand& found, RowStretch& stretch) {
  stretch.rows_at_once = TESSERA_TRY(begin_stretch(found, stretch));
  const RowBand band{found.steps, found.rows, stretch.rows_at_once};
  if (band.block == 0) {
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) TESSERA_TRY(finished(works()[i], run_begun(i)));
    return {};
  }
  FirstError error;
  device_->threads().run(band.blocks(), 1, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
    for (std::int64_t block = begin; block < end; ++block)
      for (std::size_t i = stretch.begin; i < stretch.end; ++i)
        error.add(finished(works()[i], run_rows(i, band, {block, block + 1}, thread)));
  });
  TESSERA_TRY(error.take());
  for (std::size_t i = stretch.begin; i < stretch.end; ++i)
    if (runs_[i].library != nullptr) runs_[i].library->end();
  return {};
}

Result<void> CpuExecutable::run_begun(std::size_t index) {
  const HostWork& work = works()[index];
  if (CompiledKernel* kernel = kernels_[work.step].get()) return run_kernel(*kernel, index, {});
  return run_items(*runs_[index].library, device_->threads(), scratch_);
}

Result<void> CpuExecutable::run_rows(std::size_t index, const RowBand& band, kernel::ItemRange blocks,
                                     unsigned thread) {
  const StepRun& run = runs_[index];
  if (run.library != nullptr) return run.library->run(blocks, scratch_[thread]);
  const CompiledKernel& kernel = *kernels_[works()[index].step];
  const CompiledJob& job = now_.jobs[index].job;
  kernel.run(job, run.parameters, band.items_of(blocks, job.job), scratch_[thread]);
  return {};
}

// ---- one step

void CpuExecutable::copy(const HostWork& work) {
  copy_shared(work.inputs[0], work.results[0], device_->threads());
}

Result<void> CpuExecutable::run_work(std::size_t index, HostWork&) { return run_step(index, {}); }

Result<void> CpuExecutable::run_step(std::size_t index, Place place) {
  const HostWork& work = works()[index];
  if (CompiledKernel* kernel = kernels_[work.step].get()) return run_kernel(*kernel, index, place);
  if (const auto& form = libraries_[work.step]) return run_library(*form, runs_[index], work, place);
  return step_of(work).kind == plan::StepKind::call ? run_call(work) : run_region(runs_[index], work);
}

Result<void> CpuExecutable::run_region(StepRun& run, const HostWork& work) {
  if (depth_ >= most_planned_depth) return run_by_ops(work);
  if (run.bodies == nullptr) run.bodies = std::make_unique<BodyRuns>(device_, pool_, depth_);
  return run_by_ops(
      work, [&](const ir::FunctionRef& body, BodyRuns::Tensors& inputs, std::span<const std::int64_t> sizes) {
        return run.bodies->run(body, inputs, sizes, numbers());
      });
}

Result<void> CpuExecutable::run_call(const HostWork& work) {
  const auto call = call_of(work);
  if (TESSERA_TRY(run_single_call(call, work.inputs, work.results,
                                  {.threads = device_->threads(), .libraries = device_->libraries()})))
    return {};
  // What is written over an input must not be cleared.
  for (const op::Array& result : work.results)
    if (work.inputs.empty() || result.data != work.inputs[0].data) clear(result);
  return op::run_reference(call, work.inputs, work.results);
}

Result<void> CpuExecutable::make_ready(const LibraryForm& form, StepRun& run, const HostWork& work) {
  if (run.library == nullptr)
    run.library =
        TESSERA_TRY(make_library_call(form, work.inputs, work.results, device_->libraries(), run.row_block));
  return {};
}

LibraryLaunch CpuExecutable::library_launch(const LibraryForm& form, const HostWork& work) const {
  LibraryLaunch launch{.inputs = work.inputs, .results = work.results, .numbers = numbers(), .weights = {}};
  if (form.right != no_input) {
    const plan::ValueId weights = step_of(work).inputs[form.right];
    launch.weights.is_constant = binding().places[weights].where == plan::Where::constant;
    launch.weights.buffer = buffer_of(work, form.right);
    launch.weights.pool = pool_.get();
  }
  return launch;
}

Result<void> CpuExecutable::begin_library(const LibraryForm& form, StepRun& run, const HostWork& work) {
  TESSERA_TRY(make_ready(form, run, work));
  return run.library->begin(library_launch(form, work));
}

Result<void> CpuExecutable::run_library(const LibraryForm& form, StepRun& run, const HostWork& work,
                                        Place place) {
  TESSERA_TRY(begin_library(form, run, work));
  if (!place.is_one_thread) return run_items(*run.library, device_->threads(), scratch_);
  TESSERA_TRY(run_alone(run.library->items(), [&](kernel::ItemRange items) {
    return run.library->run(items, scratch_[place.thread]);
  }));
  run.library->end();
  return {};
}

Result<void> CpuExecutable::make_copies(StepRun& run, const HostWork& work) {
  std::vector<op::HostTensor> copies;
  for (const op::Array& input : work.inputs) {
    const bool is_copied = !input.layout.is_contiguous();
    copies.push_back(is_copied ? TESSERA_TRY(op::HostTensor::allocate(input.dtype, input.shape()))
                               : op::HostTensor());
  }
  run.copies = std::move(copies);
  return {};
}

Result<void> CpuExecutable::prepare_kernel(CompiledKernel& kernel, std::size_t index) {
  const HostWork& work = works()[index];
  StepRun& run = runs_[index];
  StepJob& job = now_.jobs[index];
  const Readers readers = run.row_block == 0 ? Readers::later : Readers::at_once;
  if (run.copies.empty()) {
    auto done = kernel.prepare(work.inputs, work.results, job.job, readers);
    const bool is_contiguous = std::all_of(work.inputs.begin(), work.inputs.end(),
                                           [](const op::Array& a) { return a.layout.is_contiguous(); });
    if (done || is_contiguous) return done;
    TESSERA_TRY(make_copies(run, work));
  }
  job.inputs = work.inputs;
  for (std::size_t i = 0; i < job.inputs.size(); ++i)
    if (!job.inputs[i].layout.is_contiguous()) job.inputs[i] = run.copies[i].array();
  return kernel.prepare(job.inputs, work.results, job.job, readers);
}

Result<void> CpuExecutable::make_ready(CompiledKernel& kernel, std::size_t index) {
  StepJob& job = now_.jobs[index];
  if (!works()[index].moved && job.is_ready) return {};
  job.is_ready = false;
  TESSERA_TRY(prepare_kernel(kernel, index));
  job.is_ready = true;
  return {};
}

Result<void> CpuExecutable::begin_kernel(CompiledKernel& kernel, std::size_t index) {
  TESSERA_TRY(make_ready(kernel, index));
  const HostWork& work = works()[index];
  StepRun& run = runs_[index];
  for (std::size_t i = 0; i < run.copies.size(); ++i)
    if (!work.inputs[i].layout.is_contiguous()) op::copy_elements(work.inputs[i], run.copies[i].array());
  // Which parameters of the plan these are is the step's affair: one kernel serves several.
  for (std::size_t i = 0; i < run.parameters.size(); ++i)
    set_if_other(run.parameters[i], numbers()[step_of(work).kernel->slots[i]]);
  return {};
}

Result<void> CpuExecutable::run_kernel(CompiledKernel& kernel, std::size_t index, Place place) {
  TESSERA_TRY(begin_kernel(kernel, index));
  const StepRun& run = runs_[index];
  const CompiledJob& job = now_.jobs[index].job;
  const auto threads = static_cast<std::int64_t>(device_->threads().size());
  if (place.is_one_thread || job.points < points_for_threads || threads == 1) {
    TESSERA_TRY(run_alone(job.job.items, [&](kernel::ItemRange items) -> Result<void> {
      kernel.run(job, run.parameters, items, scratch_[place.thread]);
      return {};
    }));
    if (job.is_plain && run.copies.empty() && waves_.empty())
      now_.plain[index] = {job.code, plain_frame(job, plain_failed_)};
    return {};
  }
  const std::int64_t piece = std::max<std::int64_t>(1, job.job.items / (threads * step_pieces_per_thread));
  device_->threads().run(job.job.items, piece, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
    kernel.run(job, run.parameters, {begin, end}, scratch_[thread]);
  });
  return {};
}
