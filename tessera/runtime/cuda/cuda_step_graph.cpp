#include "tessera/runtime/cuda/cuda_step_graph.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/condition_source.h"
#include "tessera/runtime/cuda/counter_source.h"
#include "tessera/runtime/cuda/gate.h"
#include "tessera/runtime/cuda/step_launches.h"
#include "tessera/runtime/cuda/user_program.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

/// What a loop has in memory.
struct LoopCells {
  std::int64_t turns = 0;
  std::int64_t count = 0;
  Status status;
};

StepGraphUpdate update_of(GraphUpdate update) {
  return {.patched = update.patched,
          .new_code = update.new_code,
          .recaptured = update.recaptured,
          .is_remade = update.is_instantiated,
          .refusal = std::move(update.refusal)};
}

std::uint64_t first_address(const op::Array& array) { return device_address(array.at(array.layout.offset)); }

}  // namespace

CudaStepGraph::CudaStepGraph(std::shared_ptr<CudaDevice> device, std::shared_ptr<const Stream> capturing,
                             StepBlame blame)
    : device_(std::move(device)),
      capturing_(std::move(capturing)),
      blame_(std::move(blame)),
      graph_(device_->context(), capturing_) {}

// ---- from steps to launches

Result<std::byte*> CudaStepGraph::take(HeldStep& to, std::size_t bytes) {
  std::byte* memory = TESSERA_TRY(device_->memory().allocate(bytes));
  to.memory.emplace_back(memory,
                         [device = device_, bytes](std::byte* held) { device->memory().free(held, bytes); });
  return memory;
}

Result<BoundLaunch> CudaStepGraph::kernel(const SourceRef& source, std::vector<std::uint64_t> values) {
  BoundLaunch out{.kind = BoundLaunch::Kind::kernel, .waits_itself = source->waits};
  out.function = TESSERA_TRY(device_->modules().get({&source, 1}))[0];
  out.values = std::move(values);
  return out;
}

Result<CudaStepGraph::HeldStep> CudaStepGraph::made(GraphStep step) {
  HeldStep out{.step = std::move(step)};
  switch (out.step.kind) {
    case GraphStep::Kind::call:
      TESSERA_TRY(make_call(out));
      break;
    case GraphStep::Kind::clear:
      if (out.step.bytes == 0) break;
      out.launches.push_back({.kind = BoundLaunch::Kind::clear,
                              .values = {device_address(out.step.at)},
                              .bytes = out.step.bytes});
      break;
    case GraphStep::Kind::reset:
      out.launches.push_back(TESSERA_TRY(kernel(counter_reset_source(), {device_address(out.step.at)})));
      break;
    case GraphStep::Kind::region:
      TESSERA_TRY(make_region(out));
      break;
  }
  if (out.user_code.empty()) out.user_code.resize(out.launches.size());
  return out;
}

Result<void> CudaStepGraph::make_call(HeldStep& to) {
  const op::BoundCall& call = *to.step.call;
  if (runs_on_host(*call.card))
    return Error(ErrorCode::unsupported, cat("'", call.card->name, "' runs on the host"));
  std::vector<op::Array> results = call.results;
  std::vector<BoundLaunch> copies;
  for (const std::size_t i : op::results_over_inputs(call.info(), call.inputs, call.results)) {
    BoundLaunch copy{.kind = BoundLaunch::Kind::copy};
    copy.bytes = static_cast<std::size_t>(results[i].size()) * ir::size_of(results[i].dtype);
    results[i].data = TESSERA_TRY(take(to, copy.bytes));
    copy.values = {device_address(call.results[i].data), device_address(results[i].data)};
    copies.push_back(std::move(copy));
  }
  const ReadyProgramRef ready = TESSERA_TRY(device_->program_of(call.info(), call.inputs, results));
  std::vector<std::byte*> scratch;
  for (const std::int64_t bytes : ready->program.scratch_bytes)
    scratch.push_back(TESSERA_TRY(take(to, static_cast<std::size_t>(bytes))));
  to.checks = ready->program.checks;
  if (!to.checks.empty()) {
    to.status = TESSERA_TRY(take(to, to.checks.size() * sizeof(Status)));
    TESSERA_TRY(device_->memory().clear(to.status, to.checks.size() * sizeof(Status)));
  }
  to.launches = bound_launches(*ready, {call.inputs, results, scratch, to.status});
  for (const cuda::Launch& launch : ready->program.launches) {
    if (is_empty(launch)) continue;
    const bool is_user = launch.kind == cuda::Launch::Kind::kernel && launch.source->user != nullptr;
    to.user_code.push_back(is_user ? launch.source : nullptr);
  }
  to.launches.insert(to.launches.end(), copies.begin(), copies.end());
  to.user_code.resize(to.launches.size());
  return {};
}

Result<void> CudaStepGraph::make_region(HeldStep& to) {
  if (!device_->context()->driver().has_conditionals())
    return Error(ErrorCode::unsupported, "the driver has no conditional nodes of all kinds");
  const GraphRegion& region = to.step.region;
  const ir::Dtype dtype = region.decides.data != nullptr ? region.decides.dtype : ir::Dtype::i64;
  if (region.kind == GraphRegion::Kind::branch || region.kind == GraphRegion::Kind::choice) {
    const bool is_branch = region.kind == GraphRegion::Kind::branch;
    std::vector<std::uint64_t> values{0, first_address(region.decides)};
    if (!is_branch) values.push_back(region.bodies + 1);  // what is outside is none of them
    to.launches.push_back(
        TESSERA_TRY(kernel(is_branch ? branch_source(dtype) : choice_source(dtype), std::move(values))));
    return {};
  }
  auto* cells = reinterpret_cast<LoopCells*>(TESSERA_TRY(take(to, sizeof(LoopCells))));
  const LoopCells begin{.count = region.count};
  TESSERA_TRY(
      device_->memory().copy_in(reinterpret_cast<std::byte*>(cells), std::as_bytes(std::span(&begin, 1))));
  const auto address = [](const void* cell) { return reinterpret_cast<std::uintptr_t>(cell); };
  to.status = reinterpret_cast<std::byte*>(&cells->status);
  to.checks.push_back({.op = "", .axes = {}, .limit = region.limit});
  const bool has_index = region.index.data != nullptr;
  const ir::Dtype index = region.index.dtype;
  if (has_index && (index == ir::Dtype::f16 || index == ir::Dtype::bf16 || index == ir::Dtype::boolean))
    return Error(ErrorCode::unsupported, cat("an index of dtype ", to_string(index)));
  const SourceRef source = region.kind == GraphRegion::Kind::repeat
                               ? while_source(dtype, {})
                               : limited_for_source(dtype, has_index ? std::optional(index) : std::nullopt);
  for (const std::uint64_t is_first : {1, 0}) {
    std::vector<std::uint64_t> values{
        0,
        region.decides.data != nullptr ? first_address(region.decides) : address(&cells->count),
        address(&cells->turns),
        is_first,
        static_cast<std::uint64_t>(region.limit),
        address(to.status)};
    if (has_index) values.push_back(first_address(region.index));
    to.launches.push_back(TESSERA_TRY(kernel(source, std::move(values))));
  }
  return {};
}

// ---- changes

LaunchBlame CudaStepGraph::launch_blame(const StepLayout& layout) const {
  return [this, &layout](std::size_t launch, Error error) {
    return blame_(layout.owner[launch], std::move(error));
  };
}

Result<StepGraphUpdate> CudaStepGraph::set(std::vector<GraphStep> steps) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  std::vector<HeldStep> next;
  for (GraphStep& step : steps) {
    auto one = made(std::move(step));
    if (!one) return blame_(static_cast<std::uint32_t>(next.size()), std::move(one).error());
    next.push_back(*std::move(one));
  }
  steps_.swap(next);
  auto done = lay_out_anew();
  if (!done) steps_.swap(next);
  return done;
}

/// "the graph of scale, copied, sum and 3 others"
std::string CudaStepGraph::words() const {
  constexpr std::size_t most_named = 8;
  std::string out = "the graph of ";
  std::size_t calls = 0;
  for (const HeldStep& held : steps_) {
    if (held.step.kind != GraphStep::Kind::call || ++calls > most_named) continue;
    out += cat(calls == 1 ? "" : ", ", held.step.call->card->name);
  }
  if (calls > most_named) out += cat(" and ", calls - most_named, " others");
  return out;
}

/// All launches of the steps as they are now. After an error the graph does what it did.
Result<StepGraphUpdate> CudaStepGraph::lay_out_anew() {
  std::vector<StepParts> parts;
  for (const HeldStep& held : steps_) parts.push_back({&held.step, held.launches});
  StepLayout layout = TESSERA_TRY(lay_out(parts));
  auto done = graph_.set(layout.launches, layout.after, launch_blame(layout));
  if (!done) return std::move(done).error().note(cat("making ready ", words()));
  layout_ = std::move(layout);
  words_ = std::make_shared<const std::string>(words());
  twin_.reset();
  list_code();
  list_checks();
  return update_of(*std::move(done));
}

Result<StepGraphUpdate> CudaStepGraph::replace(std::vector<std::pair<std::uint32_t, GraphStep>> steps) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  std::vector<std::uint32_t> which;
  std::vector<HeldStep> next;
  bool is_same_form = true, is_same_call = true;
  for (auto& [i, step] : steps) {
    const HeldStep& old = steps_[i];
    step.body = old.step.body;
    step.after = old.step.after;
    step.first_body = old.step.first_body;
    auto one = made(std::move(step));
    if (!one) return blame_(i, std::move(one).error());
    const auto same_kind = [](const BoundLaunch& a, const BoundLaunch& b) {
      return a.kind == b.kind && a.waits_itself == b.waits_itself;
    };
    is_same_form = is_same_form && one->checks.size() == old.checks.size() &&
                   std::equal(one->launches.begin(), one->launches.end(), old.launches.begin(),
                              old.launches.end(), same_kind);
    is_same_call = is_same_call && std::equal(one->user_code.begin(), one->user_code.end(),
                                              old.user_code.begin(), old.user_code.end(), is_same_code);
    which.push_back(i);
    next.push_back(*std::move(one));
  }
  for (std::size_t k = 0; k < which.size(); ++k) std::swap(steps_[which[k]], next[k]);
  auto done = is_same_form ? patch(which) : lay_out_anew();
  if (!done)
    for (std::size_t k = 0; k < which.size(); ++k) std::swap(steps_[which[k]], next[k]);
  else if (!is_same_call)
    list_code();
  return done;
}

/// Steps whose launches are of the kinds they were.
Result<StepGraphUpdate> CudaStepGraph::patch(std::span<const std::uint32_t> steps) {
  std::vector<std::uint32_t> changed;
  std::vector<BoundLaunch> before;
  for (const std::uint32_t step : steps)
    for (std::size_t k = 0; k < layout_.places[step].size(); ++k) {
      const std::uint32_t place = layout_.places[step][k];
      BoundLaunch next = steps_[step].launches[k];
      next.graph = layout_.launches[place].graph;
      next.condition = layout_.launches[place].condition;
      changed.push_back(place);
      before.push_back(std::exchange(layout_.launches[place], std::move(next)));
    }
  auto done = graph_.patch(layout_.launches, changed, launch_blame(layout_));
  if (!done) {
    for (std::size_t k = 0; k < changed.size(); ++k) layout_.launches[changed[k]] = std::move(before[k]);
    return std::move(done).error();
  }
  twin_.reset();
  return update_of(*std::move(done));
}

/// A kernel of the program's own is one launch, which is given the arguments of its call; if it has nothing
/// to do there is none.
Result<StepGraphUpdate> CudaStepGraph::set_numbers(std::span<const StepNumber> numbers) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  std::vector<std::uint32_t> changed;
  std::vector<std::uint64_t> values;  // what each number is now, or was
  for (const StepNumber& number : numbers)
    values.push_back(size_value(number.bits, number.dtype, kernel_number(number.dtype)));
  const auto exchange = [&](std::size_t k) {
    const StepNumber& number = numbers[k];
    if (layout_.places[number.step].empty()) return;
    const std::uint32_t place = layout_.places[number.step][0];
    steps_[number.step].launches[0].values[number.argument] = values[k];
    std::swap(layout_.launches[place].values[number.argument], values[k]);
    changed.push_back(place);
  };
  for (std::size_t k = 0; k < numbers.size(); ++k) exchange(k);
  auto done = graph_.patch(layout_.launches, changed, launch_blame(layout_));
  twin_.reset();
  if (done) return update_of(*std::move(done));
  for (std::size_t k = numbers.size(); k-- > 0;) exchange(k);
  return std::move(done).error();
}

void CudaStepGraph::list_code() {
  code_.clear();
  for (std::size_t step = 0; step < steps_.size(); ++step)
    for (std::size_t k = 0; k < steps_[step].user_code.size(); ++k)
      if (const SourceRef& source = steps_[step].user_code[k]; source != nullptr)
        add_use(code_, source, layout_.places[step][k]);
}

void CudaStepGraph::list_checks() {
  checked_.clear();
  for (std::uint32_t step = 0; step < steps_.size(); ++step)
    if (!steps_[step].checks.empty()) checked_.push_back(step);
  found_.reset();
}

// ---- launches

Result<std::optional<StepFailure>> CudaStepGraph::launch(LaunchTiming timing, std::vector<TimedStep>& times) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  TESSERA_TRY(follow_code());
  if (layout_.launches.empty()) return std::optional<StepFailure>();
  device_->stream().note_queued(words_);
  if (timing == LaunchTiming::steps)
    TESSERA_TRY(launch_timed(times));
  else
    TESSERA_TRY(graph_.launch(device_->stream()));
  if (timing == LaunchTiming::total) TESSERA_TRY(device_->stream().wait());
  if (checked_.empty()) return std::optional<StepFailure>();
  return read_statuses();
}

/// The code of the program may be other code than at the last launch.
Result<void> CudaStepGraph::follow_code() {
  std::vector<std::uint32_t> changed;
  std::vector<FunctionRef> before;
  for (CodeUse& use : code_) {
    if (!may_have_changed(use)) continue;
    auto functions = device_->modules().get({&use.source, 1});
    if (!functions) return blame_(layout_.owner[use.launches[0]], std::move(functions).error());
    for (const std::uint32_t launch : use.launches) {
      if (layout_.launches[launch].function == functions->front()) continue;
      before.push_back(std::exchange(layout_.launches[launch].function, functions->front()));
      changed.push_back(launch);
    }
    if (auto code = use.source->user->code->current()) use.seen = *std::move(code);
  }
  if (graph_.is_set() && changed.empty()) return {};
  twin_.reset();
  const auto done = graph_.is_set() ? graph_.patch(layout_.launches, changed, launch_blame(layout_))
                                    : graph_.set(layout_.launches, layout_.after, launch_blame(layout_));
  if (done) return {};
  for (CodeUse& use : code_) use.seen = nullptr;
  for (std::size_t k = 0; k < changed.size(); ++k)
    layout_.launches[changed[k]].function = std::move(before[k]);
  return done.error();
}

Result<void> CudaStepGraph::launch_timed(std::vector<TimedStep>& times) {
  if (twin_ == nullptr) {
    auto twin = std::make_unique<GraphTwin>(device_->context(), capturing_);
    TESSERA_TRY(twin->set(layout_.launches, layout_.after, layout_.outermost, launch_blame(layout_)));
    twin_ = std::move(twin);
  }
  const EventOrigin origin = TESSERA_TRY(EventOrigin::create(device_->context(), device_->stream()));
  TESSERA_TRY(twin_->launch(device_->stream()));
  TESSERA_TRY(device_->stream().wait());
  for (const StepEvents& events : twin_->events()) times.push_back(TESSERA_TRY(origin.time_of(events)));
  return {};
}

Result<std::optional<StepFailure>> CudaStepGraph::read_statuses() {
  std::size_t count = 0;
  for (const std::uint32_t step : checked_) count += steps_[step].checks.size();
  if (found_ == nullptr)
    found_ = TESSERA_TRY(PinnedMemory::create(device_->context(), count * sizeof(Status)));
  auto* found = static_cast<Status*>(found_->data());
  std::size_t at = 0;
  for (const std::uint32_t step : checked_) {
    const HeldStep& held = steps_[step];
    TESSERA_CUDA(device_->context()->driver(), cuMemcpyDtoHAsync, found + at, device_address(held.status),
                 held.checks.size() * sizeof(Status), device_->stream().handle());
    at += held.checks.size();
  }
  TESSERA_TRY(device_->stream().wait());
  std::optional<StepFailure> out;
  at = 0;
  for (const std::uint32_t step : checked_)
    for (const IndexCheck& check : steps_[step].checks) {
      const Status& status = found[at++];
      if (status.first == 0) continue;
      TESSERA_TRY(device_->memory().clear(steps_[step].status, steps_[step].checks.size() * sizeof(Status)));
      if (out) continue;
      const bool is_loop = steps_[step].step.kind == GraphStep::Kind::region;
      out = StepFailure{.step = step, .error = is_loop ? std::nullopt : error_of(check, status)};
      out->turns = is_loop ? status.index : 0;
    }
  return out;
}
