#include "tessera/engine/plan_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "tessera/base/run_meter.h"
#include "tessera/base/text.h"
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

/// Where a launch reads and writes: in the host's tensors themselves, or in copies on the device.
struct DeviceMemory {
  std::vector<std::byte*> inputs, outputs;
  std::vector<Ref<runtime::Buffer>> copies;

  static Result<DeviceMemory> of(runtime::MemoryPool& pool, std::span<const HostTensor> inputs,
                                 std::span<const HostTensor> buffers) {
    DeviceMemory out;
    const bool is_far = pool.space() != nullptr;
    for (const HostTensor& input : inputs) {
      if (is_far) out.copies.push_back(TESSERA_TRY(runtime::copy_of(input.array(), pool)).buffer);
      out.inputs.push_back(is_far ? out.copies.back()->data() : input.array().data);
    }
    for (const HostTensor& buffer : buffers) {
      if (is_far) out.copies.push_back(TESSERA_TRY(pool.allocate(buffer.byte_size())));
      out.outputs.push_back(is_far ? out.copies.back()->data() : buffer.array().data);
    }
    return out;
  }

  Result<void> fetch(runtime::MemoryPool& pool, std::span<const HostTensor> buffers) const {
    if (pool.space() == nullptr) return {};
    for (std::size_t i = 0; i < buffers.size(); ++i)
      TESSERA_TRY(pool.space()->copy_out(outputs[i], {buffers[i].array().data, buffers[i].byte_size()}));
    return {};
  }
};

}  // namespace

Result<PlanRunner> PlanRunner::create(plan::Package package, runtime::Device& device, RunLimits limits,
                                      MakeProgram make) {
  PlanRunner out;
  out.package_ = std::move(package);
  out.device_ = &device;
  out.make_ = std::move(make);
  out.limits_ = limits;
  out.pool_ = runtime::MemoryPool::create({}, device.memory_space());
  out.pool_->set_limit(static_cast<std::uint64_t>(limits.bytes));
  out.package_.programs.resize(out.package_.variants());
  out.parts_.resize(out.package_.variants());
  const auto& flags = out.package_.flags;
  for (std::size_t i = 0; i < out.package_.inputs.size(); ++i)
    if (std::ranges::find(flags, i, &plan::Flag::input) == flags.end()) out.taken_.push_back(i);
  if (flags.empty() && !out.make_) TESSERA_TRY(out.load(0));
  TESSERA_TRY(out.make_states());
  return out;
}

/// States are the same for all values of the flags.
Result<void> PlanRunner::make_states() {
  const auto& types = program(0).inputs;
  for (std::size_t i = types.size() - std::min(package_.states.size(), types.size()); i < types.size(); ++i) {
    const auto shape = ir::constant_shape(types[i].shape);
    TESSERA_CHECK(shape.has_value(), "states have sizes that never change");
    states_.push_back(TESSERA_TRY(HostTensor::allocate(types[i].dtype, {shape->begin(), shape->end()})));
  }
  return {};
}

Result<const plan::Program*> PlanRunner::load(std::size_t variant) {
  plan::Program& program = package_.programs[variant];
  if (program.parts.empty() && make_) program = TESSERA_TRY(make_(variant));
  if (parts_[variant].size() == program.parts.size()) return &program;
  std::vector<Part> loaded;
  for (const plan::Part& part : program.parts) {
    Part ready;
    ready.executable = TESSERA_TRY(device_->load(part.plan, pool_));
    loaded.push_back(std::move(ready));
  }
  parts_[variant] = std::move(loaded);
  return &program;
}

// ---- what is given

Error PlanRunner::wrong_input(std::size_t i, const HostTensor& given, const op::ValueType& expected) const {
  return Error(ErrorCode::shape, cat("input '", printable(package_.inputs[i]), "' is ", given.dtype(), "[",
                                     join(given.shape(), ", "), "], expected ", expected));
}

Result<PlanRunner::Given> PlanRunner::given(std::span<const HostTensor> inputs,
                                            std::span<const std::uint64_t> parameters) const {
  if (inputs.size() != package_.inputs.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the plan has ", package_.inputs.size(), " inputs, got ", inputs.size()));
  Given out{.variant = 0, .inputs = {}, .parameters = parameters};
  for (const std::size_t i : taken_) out.inputs.push_back(inputs[i]);
  for (std::size_t f = 0; f < package_.flags.size(); ++f) {
    const plan::Flag& flag = package_.flags[f];
    const HostTensor& value = inputs[flag.input];
    if (value.dtype() != op::Dtype::boolean || value.shape() != op::Extents(flag.rank, std::int64_t{1}))
      return wrong_input(flag.input, value, plan::type_of(flag));
    out.variant |= std::size_t{*value.array().data != std::byte{0}} << f;
  }
  return out;
}

Result<std::vector<std::int64_t>> PlanRunner::sizes_of(const Given& given,
                                                       std::span<const std::int64_t> known) const {
  const auto& [dims, types] = std::tie(program(given.variant).dims, program(given.variant).inputs);
  const auto& inputs = given.inputs;
  std::vector<std::optional<std::int64_t>> found(dims.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != types[i].dtype || inputs[i].shape().size() != types[i].rank())
      return wrong_input(taken_[i], inputs[i], types[i]);
    for (std::size_t axis = 0; axis < types[i].rank(); ++axis)
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (const op::Dim& dim = types[i].shape[axis];
            !dim.is_constant() && dim.expr() == dims[d] && !found[d])
          found[d] = inputs[i].shape()[axis];
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!found[d] && d < known.size()) found[d] = known[d];
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

Result<std::int64_t> PlanRunner::learned_size(const ir::Var& dim, const plan::LearnedSize& size,
                                              const HostTensor& from) const {
  std::int64_t number = 0;
  std::memcpy(&number, from.array().data, sizeof number);
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

Result<void> PlanRunner::prepare(const Given& given, std::size_t p, std::vector<std::int64_t> sizes,
                                 std::span<const HostTensor> inputs) {
  Part& part = parts_[given.variant][p];
  std::vector<op::Layout> layouts;
  for (const HostTensor& input : inputs) layouts.push_back(input.array().layout);
  if (part.is_prepared && sizes == part.sizes && layouts == part.layouts) return {};
  if (auto fit = plan::check_sizes(plan(given.variant, p), sizes); !fit)
    return with_places(given.variant, plan(given.variant, p), sizes, std::move(fit).error());
  TESSERA_TRY(check_work(plan(given.variant, p), sizes));
  part.is_prepared = false;
  if (auto done = part.executable->prepare(sizes, layouts); !done)
    return with_places(given.variant, plan(given.variant, p), sizes, std::move(done).error());
  part.sizes = std::move(sizes);
  part.layouts = std::move(layouts);
  part.is_prepared = true;
  return {};
}

// ---- running

std::vector<std::uint64_t> PlanRunner::parameter_bits(const plan::Plan& plan,
                                                      std::span<const std::uint64_t> parameters) const {
  std::vector<std::uint64_t> out;
  for (std::size_t slot = 0; slot < plan.parameters.size(); ++slot)
    out.push_back(slot < parameters.size() ? parameters[slot] : package_.parameters[slot]);
  return out;
}

/// Without gaps, and never memory of the caller: a view is copied.
Result<HostTensor> PlanRunner::output(std::size_t variant, std::size_t p, std::size_t i,
                                      std::span<const HostTensor> inputs,
                                      std::span<const HostTensor> buffers) const {
  const plan::Plan& of = plan(variant, p);
  const plan::Place& place = parts_[variant][p].executable->binding().output(of, i);
  const op::Dtype dtype = of.values[of.outputs[i]].type.dtype;
  const bool is_own = place.where == plan::Where::output;
  const HostTensor& owner = is_own ? buffers[place.index] : inputs[place.index];
  if (is_own && place.layout.is_contiguous() && place.layout.offset == 0)
    return HostTensor::wrap(dtype, place.layout.shape, owner.array().data,
                            std::make_shared<HostTensor>(owner));
  HostTensor out = TESSERA_TRY(HostTensor::allocate(dtype, place.layout.shape));
  op::copy_elements({dtype, place.layout, owner.array().data}, out.array());
  return out;
}

Result<void> PlanRunner::launch(std::size_t variant, std::size_t p, runtime::Launch launch,
                                EvaluationTimes& times) {
  std::vector<runtime::TimedStep> steps;
  if (times.wants_kernels()) launch.times = &steps;
  TESSERA_TRY(parts_[variant][p].executable->run(launch));
  if (steps.empty()) return {};
  const SourceLookup sources(package_.blocks);
  for (const runtime::TimedStep& step : steps)
    times.kernels.push_back({sources.of_step(plan(variant, p).steps[step.step]), step});
  return {};
}

Result<PlanRunner::Tensors> PlanRunner::run_part(const Given& given, std::size_t p,
                                                 std::span<const HostTensor> inputs, EvaluationTimes& times) {
  const plan::Plan& of = plan(given.variant, p);
  Tensors buffers;
  for (const plan::OutputBuffer& buffer : parts_[given.variant][p].executable->binding().buffers)
    buffers.push_back(TESSERA_TRY(HostTensor::allocate(op::Dtype::u8, {buffer.bytes})));
  DeviceMemory memory = TESSERA_TRY(DeviceMemory::of(*pool_, inputs, buffers));
  const auto bits = parameter_bits(of, given.parameters);
  TESSERA_TRY(launch(given.variant, p,
                     {.inputs = memory.inputs, .parameters = bits, .outputs = memory.outputs}, times));
  TESSERA_TRY(memory.fetch(*pool_, buffers));
  Tensors out;
  for (std::size_t i = 0; i < of.outputs.size(); ++i)
    out.push_back(TESSERA_TRY(output(given.variant, p, i, inputs, buffers)));
  return out;
}

Result<PlanRunner::Tensors> PlanRunner::run_parts(const Given& given, std::span<const std::int64_t> sizes,
                                                  EvaluationTimes& times) {
  std::vector<Tensors> results;
  const auto value = [&](const Source& source) -> const HostTensor& {
    if (source.part != Source::caller) return results[source.part][source.index];
    const std::size_t inputs = given.inputs.size();
    return source.index < inputs ? given.inputs[source.index] : states_[source.index - inputs];
  };
  for (const plan::Part& part : program(given.variant).parts) {
    const std::size_t p = results.size();
    TESSERA_TRY(RunMeter::check());
    std::vector<std::int64_t> own(sizes.begin(), sizes.end());
    for (const plan::LearnedSize& size : part.learned)
      own.push_back(TESSERA_TRY(learned_size(*part.plan->dims[own.size()], size, value(size.from))));
    Tensors taken;
    for (const Source& source : part.inputs) taken.push_back(value(source));
    TESSERA_TRY(prepare(given, p, std::move(own), taken));
    results.push_back(TESSERA_TRY(run_part(given, p, taken, times)));
  }
  Tensors out;
  for (const Source& source : program(given.variant).outputs) out.push_back(value(source));
  return out;
}

/// Copies: what the caller does with the outputs does not change them.
Result<void> PlanRunner::keep_states(std::span<HostTensor> outputs) {
  Tensors next;
  for (const std::uint32_t i : package_.states) {
    next.push_back(TESSERA_TRY(HostTensor::allocate(outputs[i].dtype(), outputs[i].array().layout.shape)));
    op::copy_elements(outputs[i].array(), next.back().array());
  }
  states_ = std::move(next);
  return {};
}

Result<std::vector<HostTensor>> PlanRunner::run(std::span<const HostTensor> inputs,
                                                std::span<const std::uint64_t> parameters,
                                                std::span<const std::int64_t> known) {
  EvaluationTimes times{.level = profiler_->level()};
  if (times.level != ProfilingLevel::none) times.begin = EvaluationTimes::Clock::now();
  RunMeter meter({.seconds = limits_.seconds, .work = limits_.work});
  const RunMeter::Scope scope(limits_.has_time_or_work() ? &meter : RunMeter::current());
  const Given taken = TESSERA_TRY(given(inputs, parameters));
  TESSERA_TRY(load(taken.variant));
  Tensors out = TESSERA_TRY(run_parts(taken, TESSERA_TRY(sizes_of(taken, known)), times));
  TESSERA_TRY(keep_states(out));
  if (times.level != ProfilingLevel::none) {
    times.end = EvaluationTimes::Clock::now();
    profiler_->add(times);
  }
  return out;
}
