#include "tessera/runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <bit>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"
#include "tessera/runtime/cuda/library_product.h"
#include "tessera/runtime/cuda/number_value.h"
#include "tessera/runtime/cuda/region_run.h"
#include "tessera/runtime/host_access.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

/// Memory that may be used at the same time cannot be shared, and finding out which takes the square of it.
constexpr std::size_t most_steps_side_by_side = 4096;

std::uint8_t alignment_of(const std::byte* at) {
  return static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(at) % widest_access);
}

BoundLaunch::Kind kind_of(const PlanNode& node) {
  if (node.conditional.kind != Conditional::Kind::none) return BoundLaunch::Kind::conditional;
  return node.is_join ? BoundLaunch::Kind::join : bound_kind(node.kind);
}

bool is_user_kernel(const PlanNode& node) {
  return kind_of(node) == BoundLaunch::Kind::kernel && node.source->user != nullptr;
}

/// "the plan of matmul, add, relu and 5 others"
std::string words_for(const plan::Plan& plan) {
  constexpr std::size_t most_named = 8;
  std::string out = "the plan of ";
  for (std::size_t s = 0; s < std::min(plan.steps.size(), most_named); ++s)
    out += cat(s == 0 ? "" : ", ", plan.steps[s].name());
  if (plan.steps.size() > most_named) out += cat(" and ", plan.steps.size() - most_named, " others");
  return out;
}

std::pair<const std::byte*, std::size_t> place_of(const op::HostTensor& constant) {
  return {constant.array().data, constant.byte_size()};
}

bool are_equal(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

CudaExecutable::CudaExecutable(std::shared_ptr<CudaDevice> device, plan::PlanRef plan,
                               std::shared_ptr<MemoryPool> pool, std::shared_ptr<const Stream> capturing)
    : device_(std::move(device)),
      plan_(std::move(plan)),
      pool_(std::move(pool)),
      capturing_(std::move(capturing)),
      bodies_(device_->plan_body(), device_->target()) {
  if (!device_->context()->driver().has_conditionals())
    without_conditionals_ = "the driver has no conditional nodes of all kinds";
  if (!device_->plan_body()) without_conditionals_ = "the device has no compiler for bodies of regions";
  // Those who have memory of the host alone give no limits for this one.
  if (pool_ == nullptr || pool_->space() != &device_->memory())
    pool_ = MemoryPool::create({}, device_->memory_space());
}

// ---- sizes

plan::Running CudaExecutable::running_of(const plan::Plan& plan) {
  return plan.steps.size() <= most_steps_side_by_side ? plan::Running::side_by_side
                                                      : plan::Running::one_by_one;
}

Result<void> CudaExecutable::prepare(std::span<const std::int64_t> sizes,
                                     std::span<const op::Layout> inputs) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  Prepared next;
  next.running = running_of(*plan_);
  next.binding = TESSERA_TRY(plan::bind(*plan_, sizes, inputs, next.running));
  // Addresses are known at a launch; most of them are aligned.
  const std::vector<std::uint8_t> aligned(plan_->inputs.size() + next.binding.buffers.size(), 0);
  TESSERA_TRY(make_program(next, aligned));
  take_over(std::move(next));
  return {};
}

void CudaExecutable::take_over(Prepared next) {
  prepared_ = std::move(next);
  if (words_ == nullptr) words_ = std::make_shared<const std::string>(words_for(*plan_));
  replicas_.reset(std::move(prepared_.launches), plan_->inputs.size(), prepared_.binding.buffers.size());
}

Products CudaExecutable::products(const plan::Plan& plan) {
  const bool has_products = std::any_of(plan.steps.begin(), plan.steps.end(), [](const plan::Step& step) {
    return step.kind == plan::StepKind::library ||
           (step.kind == plan::StepKind::call && may_be_product(*step.card));
  });
  if (!has_products) return Products::by_kernels;
  if (device_->awaits_products()) {
    awaits_products_ = true;
    return Products::by_kernels;
  }
  if (device_->blas() == nullptr) return Products::by_kernels;
  return library_has_ends_ ? Products::by_library_with_ends : Products::by_library;
}

/// The library may have the products, but not with what follows them; the driver may not link what the nodes
/// of regions need. Other errors say nothing about the next time.
Result<void> CudaExecutable::make_program(Prepared& to, std::span<const std::uint8_t> alignments) {
  for (;;) {
    to.refused = Refused::nothing;
    auto done = try_program(to, alignments);
    if (done || to.refused == Refused::nothing) return done;
    if (to.refused == Refused::ends_of_products)
      library_has_ends_ = false;
    else
      without_conditionals_ = done.error().message();
  }
}

Result<void> CudaExecutable::try_program(Prepared& to, std::span<const std::uint8_t> alignments) {
  ProgramOptions options{.running = to.running};
  options.products = [this](const plan::Plan& plan) { return products(plan); };
  options.limits = device_->context()->limits();
  options.workspace = [this](const Product& product) { return device_->workspace_of(product); };
  if (has_conditionals())
    options.bodies = &bodies_;
  else
    options.without_bodies = without_conditionals_;
  to.program = TESSERA_TRY(plan_program(*plan_, to.binding, alignments, options));
  TESSERA_TRY(check_memory(to));
  TESSERA_TRY(take_memory(to));
  return bind_launches(to);
}

Result<void> CudaExecutable::check_memory(const Prepared& prepared) const {
  std::uint64_t needed = saturating_sum(prepared.binding.memory.bytes, prepared.program.scratch_bytes);
  for (const plan::OutputBuffer& buffer : prepared.binding.buffers)
    needed = saturating_sum(needed, static_cast<std::uint64_t>(buffer.bytes));
  for (const op::HostTensor& constant : plan_->constants)
    needed = saturating_sum(needed, constant.byte_size());
  for (const op::HostTensor& constant : prepared.program.constants)
    needed = saturating_sum(needed, constant.byte_size());
  const std::uint64_t there = device_->context()->memory_bytes();
  if (needed <= there) return {};
  return Error(ErrorCode::memory,
               cat("the plan needs ", needed, " bytes, ", prepared.program.scratch_bytes,
                   " of them while its steps run, ", device_->context()->name(), " has ", there));
}

Result<void> CudaExecutable::take_memory(Prepared& to) {
  TESSERA_TRY(upload_constants(to.program));
  to.body_constants.clear();
  for (const op::HostTensor& constant : to.program.constants)
    to.body_constants.push_back(body_constants_.at(place_of(constant)));
  const auto take = [this](Ref<Buffer>& buffer, const Ref<Buffer>& had, std::uint64_t bytes) -> Result<void> {
    // Work that still uses what there was is before the work that will.
    if (had != nullptr && had->size() >= bytes && had->size() / 2 <= bytes)
      buffer = had;
    else
      buffer = TESSERA_TRY(pool_->allocate(bytes));
    return {};
  };
  TESSERA_TRY(take(to.block, prepared_.block, to.binding.memory.bytes));
  TESSERA_TRY(take(to.scratch, prepared_.scratch, to.program.scratch_bytes));
  TESSERA_TRY(take_statuses(to));
  to.cell_table = CellTable(*plan_, to.program);
  return take(to.cells, nullptr, to.cell_table.cells().size_bytes());
}

/// All zero. Launches with statuses are waited for: nothing writes to those that were there.
Result<void> CudaExecutable::take_statuses(Prepared& to) const {
  const std::size_t count = to.program.checks.size();
  if (count == 0) return {};
  to.statuses = prepared_.program.checks.size() == count
                    ? prepared_.statuses
                    : TESSERA_TRY(PinnedMemory::create(device_->context(), count * sizeof(Status)));
  std::fill_n(static_cast<Status*>(to.statuses->data()), count, Status());
  return {};
}

Result<void> CudaExecutable::upload_constants(const PlanProgram& program) {
  const auto upload = [this](const op::HostTensor& constant) -> Result<Ref<Buffer>> {
    Ref<Buffer> out = TESSERA_TRY(pool_->allocate(constant.byte_size()));
    TESSERA_TRY(runtime::write_bytes(*out, {constant.array().data, constant.byte_size()}));
    return out;
  };
  // Those of bodies are held by their functions, which the plan holds.
  for (const op::HostTensor& constant : program.constants)
    if (auto& made = body_constants_[place_of(constant)]; made == nullptr)
      made = TESSERA_TRY(upload(constant));
  if (constants_.size() == plan_->constants.size()) return {};
  std::vector<Ref<Buffer>> made;
  for (const op::HostTensor& constant : plan_->constants) made.push_back(TESSERA_TRY(upload(constant)));
  constants_ = std::move(made);
  return {};
}

// ---- launches

/// By node; null for what is no kernel. Those that decide about regions come last: if they alone do not load,
/// the driver does not link what they need.
Result<std::vector<FunctionRef>> CudaExecutable::functions_of(Prepared& to) {
  const std::vector<PlanNode>& nodes = to.program.nodes;
  std::vector<FunctionRef> out(nodes.size());
  for (const bool decides : {false, true}) {
    std::vector<SourceRef> sources;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (kind_of(nodes[i]) != BoundLaunch::Kind::kernel || (nodes[i].condition != 0) != decides) continue;
      if (is_user_kernel(nodes[i])) {
        out[i] = TESSERA_TRY(user_function(nodes[i]));
        continue;
      }
      sources.push_back(nodes[i].source);
      places.push_back(i);
    }
    auto functions = device_->modules().get(sources);
    if (!functions && decides && functions.error().code() != ErrorCode::memory)
      to.refused = Refused::conditional_nodes;
    if (!functions) return std::move(functions).error();
    for (std::size_t k = 0; k < places.size(); ++k) out[places[k]] = std::move((*functions)[k]);
  }
  return out;
}

Result<BlasProductRef> CudaExecutable::product_of(Prepared& to, const PlanNode& node) {
  auto product = device_->blas()->get(*node.product);
  const bool has_end = node.product->finish != Product::Finish();
  if (!product && has_end && product.error().code() != ErrorCode::memory)
    to.refused = Refused::ends_of_products;
  return product;
}

Result<void> CudaExecutable::bind_launches(Prepared& to) {
  std::vector<FunctionRef> functions = TESSERA_TRY(functions_of(to));
  to.launches.clear();
  to.after.clear();
  to.part_ends.clear();
  to.code.clear();
  to.of_input.assign(plan_->inputs.size(), {});
  to.of_output.assign(to.binding.buffers.size(), {});
  to.of_slot.assign(plan_->parameters.size(), {});
  for (const PlanNode& node : to.program.nodes) {
    BoundLaunch launch{.kind = kind_of(node), .grid = node.grid, .block = node.block};
    if (is_user_kernel(node)) add_use(to.code, node.source, static_cast<std::uint32_t>(to.launches.size()));
    launch.function = std::move(functions[to.launches.size()]);
    launch.captured = node.captured;
    launch.waits_itself = launch.kind == BoundLaunch::Kind::kernel && node.source->waits;
    if (launch.kind == BoundLaunch::Kind::product) launch.product = TESSERA_TRY(product_of(to, node));
    launch.shared_bytes = node.shared_bytes;
    launch.bytes = static_cast<std::size_t>(node.bytes);
    launch.conditional = node.conditional;
    launch.condition = node.condition;
    launch.graph = node.graph;
    for (const PlanArgument& argument : node.arguments) {
      note_use(
          to, argument,
          {static_cast<std::uint32_t>(to.launches.size()), static_cast<std::uint32_t>(launch.values.size())});
      launch.values.push_back(fixed_value(to, argument));
    }
    to.launches.push_back(std::move(launch));
  }
  for (const DrivenStep& driven : to.program.driven) to.part_ends.push_back(driven.before);
  to.part_ends.push_back(static_cast<std::uint32_t>(to.launches.size()));
  for (std::uint32_t node = 0, part = 0, begin = 0; node < to.launches.size(); ++node) {
    while (node >= to.part_ends[part]) begin = to.part_ends[part++];
    to.after.push_back(to.program.nodes[node].after);
    for (std::uint32_t& before : to.after.back()) before -= begin;
  }
  return {};
}

void CudaExecutable::note_use(Prepared& to, const PlanArgument& argument, Use use) const {
  if (argument.kind == PlanArgument::Kind::number) {
    to.of_slot[argument.slot].push_back(use);
    to.holds_numbers = true;
  }
  if (argument.kind != PlanArgument::Kind::address) return;
  if (argument.address.base == Address::Base::input) to.of_input[argument.address.index].push_back(use);
  if (argument.address.base == Address::Base::output) to.of_output[argument.address.index].push_back(use);
}

/// What is the same in every launch; 0 for what is not.
std::uint64_t CudaExecutable::fixed_value(const Prepared& of, const PlanArgument& argument) const {
  if (argument.kind != PlanArgument::Kind::address) return argument.bits;
  if (argument.address.base == Address::Base::status)
    return device_address(static_cast<std::byte*>(of.statuses->data()) + argument.address.byte);
  const Buffer* buffer = nullptr;
  std::size_t cells = 0;  // before those that it counts from
  switch (argument.address.base) {
    case Address::Base::input:
    case Address::Base::output:
    case Address::Base::status:
      return 0;
    case Address::Base::block:
      buffer = of.block.get();
      break;
    case Address::Base::scratch:
      buffer = of.scratch.get();
      break;
    case Address::Base::constant:
      buffer = argument.address.index < constants_.size()
                   ? constants_[argument.address.index].get()
                   : of.body_constants[argument.address.index - constants_.size()].get();
      break;
    case Address::Base::number:
      cells += of.program.sizes.size();
      [[fallthrough]];
    case Address::Base::size:
      cells += plan_->parameters.size();
      [[fallthrough]];
    case Address::Base::cell:
      buffer = of.cells.get();
      break;
  }
  return device_address(buffer->data() + cells * sizeof(std::uint64_t) + argument.address.byte);
}

void CudaExecutable::set_value(GraphReplica& replica, Use use, std::uint64_t value) {
  std::uint64_t& held = replica.launches[use.node].values[use.argument];
  if (held == value) return;
  held = value;
  replica.changed.push_back(use.node);
}

/// What sources assume of the address of an input that is not aligned: that its elements are. Half an element
/// behind an aligned address, no element seems to lie at one.
std::uint8_t CudaExecutable::alignment_of_input(const runtime::Launch& launch, std::size_t i) const {
  const std::uint8_t alignment = alignment_of(launch.inputs[i]);
  const std::size_t width = ir::size_of(plan_->values[plan_->inputs[i]].type.dtype);
  const std::uint8_t assumed = prepared_.program.alignments[i];
  if (width == 1) return alignment;
  return alignment == 0 && assumed == 0 ? 0 : static_cast<std::uint8_t>(width / 2);
}

/// Sources that read 16 bytes at once do so from addresses that allow it. An input that once began elsewhere
/// may do so again: it needs no other code then.
Result<void> CudaExecutable::follow_alignments(const runtime::Launch& launch) {
  std::vector<std::uint8_t>& assumed = prepared_.program.alignments;
  const std::size_t inputs = launch.inputs.size();
  bool is_other = false;
  const auto at = [&](std::size_t i) {
    return i < inputs ? alignment_of_input(launch, i) : alignment_of(launch.outputs[i - inputs]);
  };
  for (std::size_t i = 0; i < assumed.size() && !is_other; ++i) is_other = at(i) != assumed[i];
  if (!is_other) return {};
  std::vector<std::uint8_t> alignments;
  for (std::size_t i = 0; i < assumed.size(); ++i) alignments.push_back(at(i));
  return rebuild(alignments);
}

/// The program for the same sizes.
Result<void> CudaExecutable::rebuild(std::span<const std::uint8_t> alignments) {
  Prepared next{.binding = prepared_.binding, .running = prepared_.running};
  TESSERA_TRY(make_program(next, alignments));
  take_over(std::move(next));
  return {};
}

void CudaExecutable::follow_addresses(const runtime::Launch& launch) {
  replicas_.choose({launch.inputs, launch.outputs});
  GraphReplica& replica = replicas_.current();
  const auto follow = [&](std::span<std::byte* const> given, std::vector<std::byte*>& held,
                          const std::vector<std::vector<Use>>& uses) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] == held[i]) continue;
      held[i] = given[i];
      for (const Use& use : uses[i]) {
        const PlanArgument& argument = prepared_.program.nodes[use.node].arguments[use.argument];
        set_value(replica, use, device_address(given[i] + argument.address.byte));
      }
    }
  };
  follow(launch.inputs, replica.inputs, prepared_.of_input);
  follow(launch.outputs, replica.outputs, prepared_.of_output);
}

/// Those that nodes hold.
void CudaExecutable::follow_numbers(const runtime::Launch& launch) {
  GraphReplica& replica = replicas_.current();
  if (!prepared_.holds_numbers && !has_driven()) return;
  if (are_equal(launch.parameters, replica.parameters)) return;
  const bool is_first = replica.parameters.size() != launch.parameters.size();
  for (std::size_t slot = 0; slot < launch.parameters.size(); ++slot) {
    const std::uint64_t bits = launch.parameters[slot];
    if (!is_first && replica.parameters[slot] == bits) continue;
    for (const Use& use : prepared_.of_slot[slot]) {
      const PlanArgument& argument = prepared_.program.nodes[use.node].arguments[use.argument];
      set_value(replica, use, argument_value(bits, plan_->parameters[slot], argument.dtype));
    }
  }
  replica.parameters.assign(launch.parameters.begin(), launch.parameters.end());
}

/// Those that all replicas read from memory: what changed is one copy. The driver has read it when the call
/// returns: it lies in pageable memory.
Result<void> CudaExecutable::follow_cells(const runtime::Launch& launch) {
  CellTable& table = prepared_.cell_table;
  const CellTable::Change changed = table.follow(launch.parameters);
  if (changed.is_empty()) return {};
  const auto cells = table.cells().subspan(changed.begin, changed.end - changed.begin);
  TESSERA_CUDA(device_->context()->driver(), cuMemcpyHtoDAsync,
               device_address(prepared_.cells->data() + changed.begin * sizeof(std::uint64_t)), cells.data(),
               cells.size_bytes(), device_->stream().handle());
  table.note_copied();
  return {};
}

Result<FunctionRef> CudaExecutable::user_function(const PlanNode& node) {
  auto functions = device_->modules().get({&node.source, 1});
  if (!functions) return std::move(functions).error().at(plan_->steps[node.step].span.resolve());
  return functions->front();
}

/// The code of the program may be other code than at the last launch.
Result<void> CudaExecutable::follow_code() {
  GraphReplica& replica = replicas_.current();
  for (CodeUse& use : prepared_.code) {
    if (may_have_changed(use)) {
      use.function = TESSERA_TRY(user_function(prepared_.program.nodes[use.launches[0]]));
      if (auto code = use.source->user->code->current()) use.seen = *std::move(code);
    }
    for (const std::uint32_t node : use.launches) {
      if (replica.launches[node].function == use.function) continue;
      replica.launches[node].function = use.function;
      replica.changed.push_back(node);
    }
  }
  return {};
}

// ---- running

Result<void> CudaExecutable::run(const runtime::Launch& launch) {
  const Current current = TESSERA_TRY(device_->context()->enter());
  last_update_.clear();
  update_time_ = {};
  TESSERA_TRY(follow(launch));
  auto updated = update(launch);
  const bool is_refused = !updated && updated.error().code() == ErrorCode::unsupported;
  if (is_refused && prepared_.program.bodies > 0) {  // the driver does not take the nodes of regions
    without_conditionals_ = updated.error().message();
    const std::vector<std::uint8_t> alignments = prepared_.program.alignments;
    TESSERA_TRY(rebuild(alignments));
    TESSERA_TRY(follow(launch));
    updated = update(launch);
  }
  if (!updated) return std::move(updated).error().note(cat("making ready ", *words_));
  device_->stream().note_queued(words_);
  auto done = launch.times != nullptr ? run_timed(*launch.times) : run_parts();
  if (prepared_.program.checks.empty()) return done;
  // Steps that stand before one that failed have run: what they found wrong is of this run, and came first.
  auto found = read_statuses();
  return found ? std::move(done) : std::move(found);
}

Result<void> CudaExecutable::update(const runtime::Launch& launch) {
  return launch.times != nullptr ? set_twins() : update_graphs();
}

std::string CudaExecutable::driven_by_host() const {
  std::string out;
  for (const DrivenStep& driven : prepared_.program.driven) {
    const plan::Step& step = plan_->steps[driven.step];
    if (step.kind == plan::StepKind::call) continue;  // what the program asks for
    out += cat(out.empty() ? "" : ", ", "'", step.name(), "': ", driven.why);
  }
  return out;
}

/// The library that was not there when the program was made may be there now. Without it the program goes on
/// as it is.
void CudaExecutable::follow_library() {
  if (!awaits_products_ || device_->awaits_products()) return;
  awaits_products_ = false;
  const std::vector<std::uint8_t> alignments = prepared_.program.alignments;
  static_cast<void>(rebuild(alignments).ok());
}

/// The launches of the replica that is current do what is asked.
Result<void> CudaExecutable::follow(const runtime::Launch& launch) {
  follow_library();
  if (!replicas_.current().holds({launch.inputs, launch.outputs})) {
    TESSERA_TRY(follow_alignments(launch));
    follow_addresses(launch);
  }
  follow_numbers(launch);
  TESSERA_TRY(follow_cells(launch));
  return follow_code();
}

Result<void> CudaExecutable::update_graphs() {
  GraphReplica& replica = replicas_.current();
  if (!replica.is_stale && replica.changed.empty()) return {};
  const std::size_t parts = prepared_.part_ends.size();
  const auto began = TimedStep::Clock::now();
  while (replica.graphs.size() < parts)
    replica.graphs.push_back(std::make_unique<ResidentGraph>(device_->context(), capturing_));
  for (std::size_t part = 0; part < parts; ++part) TESSERA_TRY(update_graph(replica, part));
  replica.is_stale = false;
  replica.changed.clear();
  update_time_ = TimedStep::Clock::now() - began;
  return {};
}

Result<void> CudaExecutable::run_parts() {
  GraphReplica& replica = replicas_.current();
  for (std::size_t part = 0; part < prepared_.part_ends.size(); ++part) {
    if (part > 0) TESSERA_TRY(run_driven(prepared_.program.driven[part - 1].step));
    if (prepared_.part_ends[part] > part_begin(part))
      TESSERA_TRY(replica.graphs[part]->launch(device_->stream()));
  }
  return {};
}

LaunchUpdate CudaExecutable::launch_update() const {
  return {.patched = last_update_.patched,
          .new_code = last_update_.new_code,
          .recaptured = last_update_.recaptured,
          .is_remade = last_update_.is_instantiated,
          .time = update_time_};
}

/// Launches that are under way keep what they were launched with.
Result<void> CudaExecutable::update_graph(GraphReplica& replica, std::size_t part) {
  const std::uint32_t begin = part_begin(part), count = prepared_.part_ends[part] - begin;
  if (count == 0) return {};
  const auto launches = std::span<const BoundLaunch>(replica.launches).subspan(begin, count);
  GraphUpdate update;
  if (replica.is_stale) {
    const auto after = std::span<const std::vector<std::uint32_t>>(prepared_.after).subspan(begin, count);
    update = TESSERA_TRY(replica.graphs[part]->set(launches, after, blame_of(part)));
  } else {
    std::vector<std::uint32_t> own;
    for (const std::uint32_t node : replica.changed)
      if (node >= begin && node - begin < count) own.push_back(node - begin);
    update = TESSERA_TRY(replica.graphs[part]->patch(launches, own, blame_of(part)));
  }
  last_update_.patched += update.patched;
  last_update_.new_code += update.new_code;
  last_update_.recaptured += update.recaptured;
  last_update_.is_instantiated = last_update_.is_instantiated || update.is_instantiated;
  if (last_update_.refusal.empty()) last_update_.refusal = std::move(update.refusal);
  return {};
}

std::byte* CudaExecutable::address_now(plan::ValueId value) const {
  const Address at = address_of(*plan_, prepared_.binding, value);
  if (at.base == Address::Base::input) return replicas_.current().inputs[at.index];
  if (at.base == Address::Base::output) return replicas_.current().outputs[at.index];
  const std::uint64_t fixed = fixed_value(prepared_, {.kind = PlanArgument::Kind::address, .address = at});
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(fixed));
}

Result<void> CudaExecutable::run_driven(plan::StepId s) {
  const plan::Step& step = plan_->steps[s];
  const auto arrays = [this](const std::vector<plan::ValueId>& values) {
    std::vector<op::Array> out;
    for (const plan::ValueId value : values)
      out.push_back(
          {plan_->values[value].type.dtype, prepared_.binding.places[value].layout, address_now(value)});
    return out;
  };
  const auto inputs = arrays(step.inputs), results = arrays(step.results);
  if (step.kind == plan::StepKind::call) {
    const op::CallInfo call(*step.card, prepared_.binding.input_types[s], prepared_.binding.attributes[s]);
    auto called = device_->run(call, inputs, results);
    return called ? std::move(called) : std::move(called).error().at(step.span.resolve());
  }
  const RegionLaunch launch{inputs, results, replicas_.current().parameters, prepared_.binding.sizes};
  auto done = run_region(*step.function, launch, *device_, *pool_);
  return done ? std::move(done) : std::move(done).error().at(step.span.resolve());
}

/// The twins run what the graphs would, side by side as they do.
Result<void> CudaExecutable::set_twins() {
  GraphReplica& replica = replicas_.current();
  const std::size_t parts = prepared_.part_ends.size();
  while (replica.twins.size() < parts)
    replica.twins.push_back(std::make_unique<GraphTwin>(device_->context(), capturing_));
  for (std::size_t part = 0; part < parts; ++part) TESSERA_TRY(set_twin(replica, part));
  // What changed is in the twins alone; the graphs compare all nodes when they run again.
  replica.is_stale = true;
  replica.changed.clear();
  return {};
}

Result<void> CudaExecutable::run_timed(std::vector<TimedStep>& times) {
  GraphReplica& replica = replicas_.current();
  const std::size_t parts = prepared_.part_ends.size();
  const Stream& stream = device_->stream();
  const EventOrigin origin = TESSERA_TRY(EventOrigin::create(device_->context(), stream));
  std::vector<StepEvents> driven;
  for (std::size_t part = 0; part < parts; ++part) {
    if (part > 0) {
      const plan::StepId step = prepared_.program.driven[part - 1].step;
      driven.push_back(TESSERA_TRY(StepEvents::create(device_->context(), step)));
      TESSERA_TRY(driven.back().begin.record(stream));
      TESSERA_TRY(run_driven(step));
      TESSERA_TRY(driven.back().end.record(stream));
    }
    if (prepared_.part_ends[part] > part_begin(part)) TESSERA_TRY(replica.twins[part]->launch(stream));
  }
  TESSERA_TRY(stream.wait());
  const std::size_t first = times.size();
  for (const StepEvents& step : driven) times.push_back(TESSERA_TRY(origin.time_of(step)));
  for (std::size_t part = 0; part < parts; ++part)
    for (const StepEvents& step : replica.twins[part]->events())
      times.push_back(TESSERA_TRY(origin.time_of(step)));
  assign_lanes(std::span(times).subspan(first));
  return {};
}

Result<void> CudaExecutable::set_twin(GraphReplica& replica, std::size_t part) {
  const std::uint32_t begin = part_begin(part), count = prepared_.part_ends[part] - begin;
  if (count == 0) return {};
  std::vector<std::uint32_t> steps;
  for (std::uint32_t i = 0; i < count; ++i) steps.push_back(prepared_.program.nodes[begin + i].step);
  return replica.twins[part]->set(
      std::span<const BoundLaunch>(replica.launches).subspan(begin, count),
      std::span<const std::vector<std::uint32_t>>(prepared_.after).subspan(begin, count), steps,
      blame_of(part));
}

LaunchBlame CudaExecutable::blame_of(std::size_t part) const {
  return [this, begin = part_begin(part)](std::size_t launch, Error error) {
    const plan::Step& step = plan_->steps[prepared_.program.nodes[begin + launch].step];
    return std::move(error).note(cat("in the graph, for '", step.name(), "'")).at(step.span.resolve());
  };
}

Result<void> CudaExecutable::read_statuses() {
  TESSERA_TRY(device_->stream().wait());
  const std::span<Status> found(static_cast<Status*>(prepared_.statuses->data()),
                                prepared_.program.checks.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const PlanCheck& check = prepared_.program.checks[i];
    auto error = error_of(check.check, found[i]);
    if (!error) continue;
    std::fill(found.begin(), found.end(), Status());
    return std::move(*error).at(check.span.resolve());
  }
  return {};
}
