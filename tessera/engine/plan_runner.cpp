#include "tessera/engine/plan_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "tessera/base/check.h"
#include "tessera/base/forked_child.h"
#include "tessera/base/run_meter.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/ir/walk.h"
#include "tessera/plan/known_sizes.h"
#include "tessera/plan/size_conditions.h"
#include "tessera/plan/work.h"
#include "tessera/runtime/host_access.h"

using namespace tessera;
using namespace tessera::engine;
using op::HostTensor;
using plan::Source;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view first_launch = "first launch of its plan";

/// For dtypes and shapes of inputs, and for layouts.
void add_words(std::span<const std::int64_t> words, std::vector<std::int64_t>& out) {
  out.push_back(static_cast<std::int64_t>(words.size()));
  out.insert(out.end(), words.begin(), words.end());
}
void add_words(const op::Extents& words, std::vector<std::int64_t>& out) {
  add_words(std::span(words.data(), words.size()), out);
}

}  // namespace

Result<PlanRunner> PlanRunner::create(plan::Package package, runtime::Device& device, RunLimits limits,
                                      MakeProgram make) {
  PlanRunner out;
  out.pool_ = runtime::MemoryPool::create({}, device.memory_space());
  out.pool_->set_limit(static_cast<std::uint64_t>(limits.bytes));
  TESSERA_TRY(out.begin(std::move(package), device, limits, std::move(make)));
  return out;
}

Result<PlanRunner> PlanRunner::create(plan::Package package, Engine& engine, std::string name,
                                      RunLimits limits, MakeProgram make) {
  PlanRunner out;
  out.engine_ = &engine;
  out.name_ = std::move(name);
  out.pool_ = engine.pool();
  out.profiler_ = &engine.profiler();
  out.keeps_copies_ = !engine.is_deterministic();
  TESSERA_TRY(out.begin(std::move(package), engine.device(), limits, std::move(make)));
  return out;
}

Result<void> PlanRunner::begin(plan::Package package, runtime::Device& device, RunLimits limits,
                               MakeProgram make) {
  if (is_forked_child()) return forked_child_error();
  package_ = std::move(package);
  device_ = &device;
  make_ = std::move(make);
  limits_ = limits;
  package_.programs.resize(package_.variants());
  idle_.resize(package_.variants());
  refused_.resize(package_.variants());
  const auto& flags = package_.flags;
  for (std::size_t i = 0; i < package_.inputs.size(); ++i)
    if (std::ranges::find(flags, i, &plan::Flag::input) == flags.end()) taken_.push_back(i);
  if (flags.empty() && !make_) TESSERA_TRY(load(0));
  return make_states();
}

/// States are the same for all values of the flags.
Result<void> PlanRunner::make_states() {
  const auto& types = program(0).inputs;
  for (std::size_t i = types.size() - std::min(package_.states.size(), types.size()); i < types.size(); ++i) {
    const auto shape = ir::constant_shape(types[i].shape);
    TESSERA_CHECK(shape.has_value(), "states have sizes that never change");
    const op::Extents extents(shape->begin(), shape->end());
    const auto bytes = static_cast<std::size_t>(op::element_count(extents)) * ir::size_of(types[i].dtype);
    runtime::Storage storage{TESSERA_TRY(pool_->allocate(bytes)), op::contiguous(extents)};
    TESSERA_TRY(runtime::clear(*storage.buffer));
    states_.push_back({types[i].dtype, std::move(storage)});
  }
  return {};
}

// ---- programs and their instances

/// What cannot be made is not tried again, unless it was for want of memory. REQUIRES the lock of the
/// instances.
Result<void> PlanRunner::make(std::size_t variant) {
  plan::Program& program = package_.programs[variant];
  if (!program.parts.empty() || !make_) return {};
  if (refused_[variant]) return *refused_[variant];
  auto made = make_(variant);
  if (!made && made.error().code() != ErrorCode::memory) refused_[variant] = made.error();
  program = TESSERA_TRY(std::move(made));
  if (engine_ != nullptr) engine_->count_plans_made(program.parts.size());
  return {};
}

Result<PlanRunner::InstanceRef> PlanRunner::new_instance(std::size_t variant) {
  auto out = std::make_unique<Instance>();
  for (const plan::Part& part : program(variant).parts)
    out->parts.push_back(TESSERA_TRY(PlanInstance::load(part.plan, *device_, pool_)));
  out->results.resize(out->parts.size());
  out->reports.resize(out->parts.size());
  return out;
}

/// The one that was used last, whose memory is in the caches.
Result<PlanRunner::InstanceRef> PlanRunner::take_instance(std::size_t variant) {
  {
    const std::lock_guard lock(locks_->instances);
    TESSERA_TRY(make(variant));
    auto& idle = idle_[variant];
    if (!idle.empty()) {
      InstanceRef out = std::move(idle.back());
      idle.pop_back();
      return out;
    }
  }
  return new_instance(variant);
}

void PlanRunner::give_back(std::size_t variant, InstanceRef instance) noexcept {
  try {
    for (const auto& part : instance->parts) part->finish();
    for (Values& results : instance->results) results.clear();
    const std::lock_guard lock(locks_->instances);
    idle_[variant].push_back(std::move(instance));
  } catch (const std::bad_alloc&) {  // the next run makes another
  }
}

Result<const plan::Program*> PlanRunner::load(std::size_t variant) {
  if (is_forked_child()) return forked_child_error();
  give_back(variant, TESSERA_TRY(take_instance(variant)));
  return &program(variant);
}

// ---- what is given

Error PlanRunner::wrong_input(std::size_t i, const ValueView& given, const op::ValueType& expected) const {
  return Error(ErrorCode::shape, cat("input '", printable(package_.inputs[i]), "' is ", given.dtype, "[",
                                     join(given.shape(), ", "), "], expected ", expected));
}

Result<bool> PlanRunner::flag_value(const plan::Flag& flag, const ValueView& given) const {
  if (given.dtype != op::Dtype::boolean || given.shape() != op::Extents(flag.rank, std::int64_t{1}))
    return wrong_input(flag.input, given, plan::type_of(flag));
  std::byte value{};
  TESSERA_TRY(runtime::read_element(*given.storage->buffer, given.storage->layout.offset, {&value, 1}));
  return value != std::byte{0};
}

Result<void> PlanRunner::take_inputs(std::span<const ValueView> inputs, Given& out) const {
  if (inputs.size() != package_.inputs.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the plan has ", package_.inputs.size(), " inputs, got ", inputs.size()));
  for (const std::size_t i : taken_) out.inputs.push_back(inputs[i]);
  for (std::size_t f = 0; f < package_.flags.size(); ++f) {
    const plan::Flag& flag = package_.flags[f];
    out.variant |= std::size_t{TESSERA_TRY(flag_value(flag, inputs[flag.input]))} << f;
  }
  return {};
}

Result<std::vector<std::int64_t>> PlanRunner::sizes_of(const Given& given) const {
  const auto& [dims, types] = std::tie(program(given.variant).dims, program(given.variant).inputs);
  const auto& inputs = given.inputs;
  std::vector<std::optional<std::int64_t>> found(dims.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype != types[i].dtype || inputs[i].shape().size() != types[i].rank())
      return wrong_input(taken_[i], inputs[i], types[i]);
    for (std::size_t axis = 0; axis < types[i].rank(); ++axis)
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (const op::Dim& dim = types[i].shape[axis];
            !dim.is_constant() && dim.expr() == dims[d] && !found[d])
          found[d] = inputs[i].shape()[axis];
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!found[d] && d < given.sizes.size()) found[d] = given.sizes[d];
    if (!found[d])
      return Error(ErrorCode::shape, cat("the size '", printable(dims[d]->name),
                                         "' does not follow from the shapes of the inputs"));
    sizes.push_back(*found[d]);
  }
  const plan::KnownSizes known_sizes{dims, sizes};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t axis = 0; axis < types[i].rank(); ++axis)
      if (TESSERA_TRY(known_sizes.of(types[i].shape[axis])) != inputs[i].shape()[axis])
        return wrong_input(taken_[i], inputs[i], types[i]);
  return sizes;
}

/// Inputs of the shapes that the last run had, have its sizes.
Result<void> PlanRunner::find_sizes(Run& run) const {
  Instance& instance = run.instance;
  instance.words.clear();
  for (const ValueView& input : run.given.inputs) {
    instance.words.push_back(static_cast<std::int64_t>(input.dtype));
    add_words(input.shape(), instance.words);
  }
  add_words(run.given.sizes, instance.words);
  if (instance.words == instance.shapes) return {};
  instance.sizes = TESSERA_TRY(sizes_of(run.given));
  instance.shapes.swap(instance.words);
  return {};
}

Result<std::int64_t> PlanRunner::learned_size(const ir::Var& dim, const plan::LearnedSize& size,
                                              const ValueView& from) const {
  std::int64_t number = 0;
  TESSERA_TRY(runtime::read_element(*from.storage->buffer, from.storage->layout.offset,
                                    std::as_writable_bytes(std::span(&number, 1))));
  auto fits = plan::check_range(dim, number);
  if (!fits) return std::move(fits).error().at(size.at.resolve());
  return number;
}

Result<void> PlanRunner::check_work(const plan::Plan& plan, std::span<const std::int64_t> sizes) const {
  if (limits_.work == std::numeric_limits<double>::infinity()) return {};
  const auto by_step = TESSERA_TRY(plan::work_by_step(plan, sizes));
  const double work = std::accumulate(by_step.begin(), by_step.end(), 0.0);
  if (work <= limits_.work) return {};
  return Error(ErrorCode::limit, cat("the work is about ", work, " multiply-adds, at most ",
                                     std::llround(limits_.work), " are allowed"));
}

Result<void> PlanRunner::check_memory(const plan::Binding& binding) const {
  std::int64_t bytes = static_cast<std::int64_t>(binding.memory.bytes);
  for (const plan::OutputBuffer& buffer : binding.buffers) bytes += buffer.bytes;
  if (bytes <= limits_.bytes) return {};
  return Error(ErrorCode::memory,
               cat("the plan needs ", bytes, " bytes at once, at most ", limits_.bytes, " are allowed"));
}

/// "N is axis 0 of input 'x'", for each symbol in the size; empty if none is one of an input alone.
std::string PlanRunner::places_of(std::size_t variant, const op::Dim& size) const {
  std::string out;
  if (size.is_constant()) return out;
  const auto& types = program(variant).inputs;
  const auto add_place = [&](const ir::Var& symbol) {
    for (std::size_t i = 0; i < taken_.size(); ++i)
      for (std::size_t axis = 0; axis < types[i].rank(); ++axis)
        if (const op::Dim& dim = types[i].shape[axis]; !dim.is_constant() && dim.expr().get() == &symbol) {
          out += cat(out.empty() ? "" : ", ", printable(symbol.name), " is axis ", axis, " of input '",
                     printable(package_.inputs[taken_[i]]), "'");
          return;
        }
  };
  for (const ir::Node* node : ir::post_order(*size.expr()))
    if (const auto* symbol = ir::as<ir::Var>(*node)) add_place(*symbol);
  return out;
}

/// An error about sizes. If sizes differ that must be equal, it says where the caller gave them.
Error PlanRunner::with_places(std::size_t variant, const plan::Plan& plan,
                              std::span<const std::int64_t> sizes, Error error) const {
  const auto unequal = plan::unequal_sizes(plan, sizes);
  if (!unequal || !*unequal) return error;
  for (const op::Dim& size : {(*unequal)->first, (*unequal)->second})
    if (std::string places = places_of(variant, size); !places.empty())
      static_cast<void>(std::move(error).note(std::move(places)));
  return error;
}

/// Sizes, and then the layouts of the inputs.
Result<void> PlanRunner::prepare(Run& run, PlanInstance& part) {
  Instance& instance = run.instance;
  instance.words.assign(instance.symbols.begin(), instance.symbols.end());
  for (const PlanInstance::Input& input : part.inputs()) {
    add_words(input.storage->layout.shape, instance.words);
    add_words(input.storage->layout.strides, instance.words);
  }
  if (part.is_prepared_for(instance.words)) return {};
  const plan::Plan& plan = part.plan();
  if (auto fit = plan::check_sizes(plan, instance.symbols); !fit)
    return with_places(run.given.variant, plan, instance.symbols, std::move(fit).error());
  TESSERA_TRY(check_work(plan, instance.symbols));
  if (auto done = part.prepare(instance.words, instance.symbols, {}, instance.outcome); !done)
    return with_places(run.given.variant, plan, instance.symbols, std::move(done).error());
  return {};
}

// ---- running

std::span<const std::uint64_t> PlanRunner::parameter_bits(Run& run, const plan::Plan& plan) const {
  std::vector<std::uint64_t>& out = run.instance.parameters;
  out.clear();
  const std::span<const std::uint64_t> given = run.given.parameters;
  for (std::size_t slot = 0; slot < plan.parameters.size(); ++slot)
    out.push_back(slot < given.size() ? given[slot] : package_.parameters[slot]);
  return out;
}

ValueView PlanRunner::value(const Run& run, const Source& source) const {
  if (source.part != Source::caller) return run.instance.results[source.part][source.index].view();
  const std::size_t inputs = run.given.inputs.size();
  return source.index < inputs ? run.given.inputs[source.index] : states_[source.index - inputs].view();
}

Result<void> PlanRunner::learn_sizes(Run& run, const plan::Part& part) const {
  std::vector<std::int64_t>& symbols = run.instance.symbols;
  symbols.assign(run.instance.sizes.begin(), run.instance.sizes.end());
  for (const plan::LearnedSize& size : part.learned)
    symbols.push_back(
        TESSERA_TRY(learned_size(*part.plan->dims[symbols.size()], size, value(run, size.from))));
  return {};
}

Result<void> PlanRunner::launch(Run& run, PlanInstance& part) {
  std::vector<runtime::TimedStep> steps;
  const LaunchOptions options{.times = run.times.wants_kernels() ? &steps : nullptr,
                              .keeps_copies = keeps_copies_};
  TESSERA_TRY(part.launch(parameter_bits(run, part.plan()), *pool_, options, run.instance.outcome));
  if (steps.empty()) return {};
  const SourceLookup sources(package_.blocks);
  for (const runtime::TimedStep& step : steps)
    run.times.kernels.push_back({sources.of_step(part.plan().steps[step.step]), step});
  return {};
}

Result<void> PlanRunner::run_part(Run& run, std::size_t p) {
  const auto begin = Clock::now();
  const plan::Part& of = program(run.given.variant).parts[p];
  PlanInstance& part = *run.instance.parts[p];
  run.instance.outcome.clear();
  TESSERA_TRY(learn_sizes(run, of));
  for (std::size_t i = 0; i < of.inputs.size(); ++i)
    part.inputs()[i].storage = value(run, of.inputs[i]).storage;
  TESSERA_TRY(prepare(run, part));
  TESSERA_TRY(check_memory(part.binding()));
  TESSERA_TRY(launch(run, part));
  Values& results = run.instance.results[p];
  results.clear();
  const plan::Plan& plan = part.plan();
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    results.push_back({plan.values[plan.outputs[i]].type.dtype, part.output(i)});
  part.finish();
  if (engine_ != nullptr) report(run, p, begin);
  return {};
}

void PlanRunner::report(Run& run, std::size_t p, Clock::time_point begin) const {
  ComponentReport& out = run.instance.reports[p];
  LaunchOutcome& outcome = run.instance.outcome;
  const PlanInstance& part = *run.instance.parts[p];
  out.clear();
  out.program = name_;
  out.ops = part.plan().steps.size();
  out.tier = part.launches() == 1 ? Tier::cold : outcome.tier;
  out.cause.assign(part.launches() == 1 ? first_launch : std::string_view(outcome.cause));
  out.driven.assign(outcome.driven);
  out.kernels = outcome.kernels;
  out.views = outcome.views;
  out.nanoseconds = static_cast<std::uint64_t>((Clock::now() - begin) / std::chrono::nanoseconds(1));
}

Result<PlanRunner::Values> PlanRunner::run_parts(Run& run) {
  const plan::Program& program = this->program(run.given.variant);
  TESSERA_TRY(find_sizes(run));
  for (std::size_t p = 0; p < program.parts.size(); ++p) {
    TESSERA_TRY(RunMeter::check());
    TESSERA_TRY(run_part(run, p));
  }
  Values out;
  out.reserve(program.outputs.size());
  for (const Source& source : program.outputs) {
    const ValueView result = value(run, source);
    out.push_back({result.dtype, *result.storage});
  }
  if (engine_ != nullptr) engine_->publish(run.instance.reports);
  return out;
}

Result<PlanRunner::Values> PlanRunner::run_variant(const Given& given, EvaluationTimes& times) {
  InstanceRef instance = TESSERA_TRY(take_instance(given.variant));
  Run run{given, *instance, times};
  auto out = run_parts(run);
  if (out || is_of_data(out.error())) give_back(given.variant, std::move(instance));
  return out;
}

Result<std::vector<StoredValue>> PlanRunner::run(std::span<const ValueView> inputs,
                                                 std::span<const std::uint64_t> parameters,
                                                 std::span<const std::int64_t> sizes) {
  if (is_forked_child()) return forked_child_error();
  EvaluationTimes times{.level = profiler_->level()};
  if (times.level != ProfilingLevel::none) times.begin = EvaluationTimes::Clock::now();
  RunMeter meter({.seconds = limits_.seconds, .work = limits_.work});
  const RunMeter::Scope scope(limits_.has_time_or_work() ? &meter : RunMeter::current());
  Given given{.variant = 0, .inputs = {}, .parameters = parameters, .sizes = sizes};
  TESSERA_TRY(take_inputs(inputs, given));
  std::unique_lock states(locks_->states, std::defer_lock);
  if (!states_.empty()) states.lock();
  auto done = run_variant(given, times);
  const bool is_short = !done && done.error().code() == ErrorCode::memory;
  if (is_short && engine_ != nullptr && engine_->drop_idle_instances()) done = run_variant(given, times);
  Values out = TESSERA_TRY(std::move(done));
  for (std::size_t s = 0; s < states_.size(); ++s) states_[s] = out[package_.states[s]];
  if (times.level != ProfilingLevel::none) {
    TESSERA_TRY(device_->synchronize());  // what was launched is part of it
    times.end = EvaluationTimes::Clock::now();
    profiler_->add(times);
  }
  return out;
}

// ---- tensors of the host

Result<StoredValue> PlanRunner::stored(const HostTensor& tensor) const {
  const op::Array& array = tensor.array();
  if (pool_->space() != nullptr) {
    runtime::Storage copy = TESSERA_TRY(runtime::copy_of(array, *pool_));
    return StoredValue{array.dtype, std::move(copy)};
  }
  auto buffer = runtime::Buffer::wrap(array.data, tensor.byte_size(), [tensor] {});
  return StoredValue{array.dtype, {std::move(buffer), array.layout}};
}

Result<HostTensor> PlanRunner::fetched(const StoredValue& value, bool is_own) const {
  const auto& [dtype, storage] = value;
  const bool is_whole = storage.layout.is_contiguous() && storage.layout.offset == 0;
  if (storage.buffer->is_host() && is_whole && is_own)
    return HostTensor::wrap(dtype, storage.layout.shape, storage.buffer->data(),
                            std::make_shared<Ref<runtime::Buffer>>(storage.buffer));
  HostTensor out = TESSERA_TRY(HostTensor::allocate(dtype, storage.layout.shape));
  if (storage.buffer->is_host()) {
    op::copy_elements(storage.array(dtype), out.array());
    return out;
  }
  const auto bytes = TESSERA_TRY(runtime::host_elements(storage, dtype));
  std::ranges::copy(bytes, out.array().data);
  return out;
}

Result<std::vector<HostTensor>> PlanRunner::run(std::span<const HostTensor> inputs,
                                                std::span<const std::uint64_t> parameters,
                                                std::span<const std::int64_t> sizes) {
  Values given;
  std::vector<ValueView> views;
  given.reserve(inputs.size());
  for (const HostTensor& input : inputs) {
    given.push_back(TESSERA_TRY(stored(input)));
    views.push_back(given.back().view());
  }
  const Values results = TESSERA_TRY(run(views, parameters, sizes));
  std::vector<HostTensor> out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool is_state = std::ranges::find(package_.states, i) != package_.states.end();
    out.push_back(TESSERA_TRY(fetched(results[i], results[i].storage.buffer->owned() && !is_state)));
  }
  return out;
}
