#include "tessera/describe/host_updater.h"

#include <algorithm>
#include <new>

#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/exchange_ops.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// Whether a capture of one would be one of the other.
bool same_arguments(const BoundNode& a, const BoundNode& b) {
  const auto same = [](const Argument& x, const Argument& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.data == y.data &&
           (x.device_value != nullptr || x.scalar == y.scalar);
  };
  return a.grid == b.grid &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), same);
}

/// A resize moves some buffers only: what a node has captured of others, and of the same numbers, goes on.
/// What counts the rows of an append buffer is made anew.
bool can_keep_calls(const BoundNode& before, const BoundNode& now) {
  const auto same = [](const Argument& x, const Argument& y) {
    return x.scalar == y.scalar && x.counter == nullptr && y.counter == nullptr;
  };
  return before.calls != nullptr && same_arguments(before, now) &&
         std::equal(before.arguments.begin(), before.arguments.end(), now.arguments.begin(), same);
}

/// A captured graph can be patched into another with the same kernels in the same order, and into anything if
/// there was none.
bool can_patch(const BoundNode& from, const BoundNode& to) {
  if (from.calls == nullptr || to.calls == nullptr) return true;
  return std::equal(from.calls->begin(), from.calls->end(), to.calls->begin(), to.calls->end(),
                    [](const auto& x, const auto& y) { return x.kernel == y.kernel; });
}

/// The programs of an executable, by what they compute.
class KnownPrograms {
 public:
  explicit KnownPrograms(const HostExecutable* executable) {
    if (executable == nullptr) return;
    for (std::size_t i = 0; i < executable->groups.size(); ++i)
      if (executable->groups[i].program != nullptr) {
        const ir::FunctionRef& function = executable->grouping.groups[i].function;
        programs_.emplace(structural_hash(*function), Known{function, executable->groups[i].program});
      }
  }

  /// One that computes this, for one group alone; null if there is none.
  std::shared_ptr<OpProgram> take(const ir::Function& function) {
    const auto [begin, end] = programs_.equal_range(structural_hash(function));
    for (auto at = begin; at != end; ++at) {
      if (!ir::structural_equal(*at->second.function, function, ir::CompareMode::mapping)) continue;
      auto out = std::move(at->second.program);
      programs_.erase(at);
      return out;
    }
    return nullptr;
  }

 private:
  struct Known {
    ir::FunctionRef function;
    std::shared_ptr<OpProgram> program;
  };
  static Hash128 structural_hash(const ir::Function& function) {
    return ir::structural_hash(function, ir::CompareMode::mapping);
  }

  std::multimap<Hash128, Known> programs_;
};

op::Array array_of(const Graph& graph, std::uint32_t buffer) {
  return {graph.buffers[buffer].dtype, op::contiguous(graph.buffers[buffer].shape), nullptr};
}

/// Makes programs of groups, within the memory that the plan leaves.
class ProgramMaker {
 public:
  ProgramMaker(const Program& program, OpCompiler* compiler, std::uint64_t memory, UpdateReport& report)
      : compiler_(compiler), report_(report), left_(memory) {
    take_memory(program.schedule.memory.peak());
  }

  /// Null for a group that cannot be compiled or has no memory for it: it runs step by step, as planned.
  std::shared_ptr<OpProgram> make(const ir::FunctionRef& function) {
    if (compiler_ != nullptr)
      if (auto compiled = compiler_->compile(function, left_)) {
        ++report_.programs;
        return keep(*std::move(compiled));
      }
    ++report_.interpreted;
    return nullptr;
  }
  /// One that there is; null if there is none or no memory for it.
  std::shared_ptr<OpProgram> keep(std::shared_ptr<OpProgram> program) {
    if (program == nullptr || program->bytes() > left_) return nullptr;
    take_memory(program->bytes());
    return program;
  }

 private:
  void take_memory(std::uint64_t bytes) { left_ -= std::min(left_, bytes); }

  OpCompiler* compiler_;  // null: none
  UpdateReport& report_;
  std::uint64_t left_;  // bytes
};

BoundGroup bound_group(const Graph& graph, const OpGroup& group) {
  BoundGroup out;
  for (const std::uint32_t buffer : group.inputs) out.inputs.push_back(array_of(graph, buffer));
  for (const std::uint32_t buffer : group.results) out.results.push_back(array_of(graph, buffer));
  out.numbers.resize(group.numbers.size());
  return out;
}

/// Groups and programs that are there.
void keep_groups(const Program& program, const BuildInputs& inputs, HostExecutable& out,
                 UpdateReport& report) {
  ProgramMaker programs(program, nullptr, inputs.memory, report);
  TESSERA_CHECK(inputs.prepared->programs.size() == inputs.prepared->grouping.groups.size(),
                "a program or null for each group");
  out.grouping = std::move(inputs.prepared->grouping);
  for (std::size_t g = 0; g < out.grouping.groups.size(); ++g) {
    BoundGroup& bound = out.groups.emplace_back(bound_group(program.graph, out.grouping.groups[g]));
    bound.program = programs.keep(std::move(inputs.prepared->programs[g]));
  }
}

/// A group that only zeroes buffers runs step by step.
Result<void> add_groups(const Program& program, const BuildInputs& inputs, HostExecutable& out,
                        UpdateReport& report) {
  if (inputs.prepared != nullptr && inputs.device == nullptr)
    return keep_groups(program, inputs, out, report), Result<void>();
  if (inputs.compiler == nullptr) {
    out.grouping = one_by_one(program);
    return {};
  }
  out.grouping = TESSERA_TRY(group_ops(program));
  ProgramMaker programs(program, inputs.compiler, inputs.memory, report);
  KnownPrograms known(inputs.previous);
  for (const OpGroup& group : out.grouping.groups) {
    BoundGroup& bound = out.groups.emplace_back(bound_group(program.graph, group));
    if (group.nodes.empty()) continue;
    bound.program = programs.keep(known.take(*group.function));
    if (bound.program == nullptr) bound.program = programs.make(group.function);
  }
  return {};
}

}  // namespace

std::string_view tessera::description::to_string(Tier tier) {
  static constexpr std::string_view names[] = {"none", "hot", "warm", "recapture", "code", "cold"};
  return names[static_cast<std::size_t>(tier)];
}

Result<std::unique_ptr<HostExecutable>> tessera::description::build_executable(
    std::shared_ptr<const Program> program, const BuildInputs& inputs, UpdateReport& report) {
  const KernelTable& kernels = inputs.kernels;
  auto out = std::make_unique<HostExecutable>();
  out->memory = TESSERA_TRY(
      HostMemory::allocate(*program, inputs.bindings,
                           inputs.previous != nullptr ? &inputs.previous->memory : nullptr, inputs.device));
  report.bytes += out->memory.allocated();
  out->nodes.reserve(program->graph.nodes.size());
  for (std::uint32_t i = 0; i < program->graph.nodes.size(); ++i) {
    out->nodes.push_back(TESSERA_TRY(bind_node(*program, i, out->memory, kernels)));
    ++report.nodes;
    if (program->description->nodes[i].kind != NodeKind::captured) continue;
    if (inputs.keeps_calls && inputs.keeps_calls(i) &&
        can_keep_calls(inputs.previous->nodes[i], out->nodes.back())) {
      out->nodes.back() = inputs.previous->nodes[i];
      continue;
    }
    TESSERA_TRY(capture(*program, i, out->nodes.back(), kernels));
    ++report.captures;
  }
  TESSERA_TRY(add_groups(*program, inputs, *out, report));
  out->threads = inputs.threads;
  out->program = std::move(program);
  return out;
}

UpdateReport HostGraph::Updater::run() {
  return finish([&] { return apply(); });
}

UpdateReport HostGraph::Updater::run(PreparedGraph prepared) {
  return finish([&] { return build(std::move(prepared)); });
}

UpdateReport HostGraph::Updater::finish(const std::function<Result<void>()>& make) {
  const auto begin = std::chrono::steady_clock::now();
  Result<void> done;
  try {
    done = make();
  } catch (const Exception& e) {
    done = e.error();
  } catch (const std::bad_alloc&) {
    done = Error(ErrorCode::memory, "no memory for the new plan");
  }
  if (!done) report_.error = std::move(done).error();
  report_.time = std::chrono::steady_clock::now() - begin;
  return std::move(report_);
}

Result<void> HostGraph::Updater::apply() {
  const Pending& pending = graph_.pending_;
  if (!pending.structure.empty()) {
    raise(Tier::cold, pending.structure);
    return rebuild();
  }
  if (!pending.ops.empty()) {
    raise(Tier::cold, cat(name(*pending.ops.begin()), " changed"));
    return TESSERA_TRY(exchange_ops()) ? commit_patches() : rebuild();
  }
  find_dirty_nodes();
  for (std::uint32_t buffer : pending.shapes) {
    raise(Tier::warm, cat("buffer ", shown(graph_.draft_->buffers[buffer].id), " resized"));
    must_rebuild_ = true;
  }
  if (!must_rebuild_) TESSERA_TRY(patch());
  return must_rebuild_ ? rebuild() : Result<void>();
}

void HostGraph::Updater::raise(Tier tier, std::string cause) {
  if (tier <= report_.tier) return;
  report_.tier = tier;
  report_.cause = std::move(cause);
}

void HostGraph::Updater::find_dirty_nodes() {
  find_dirty_numbers();
  find_dirty_holders();
  find_dirty_calls();
  for (std::uint32_t node : graph_.pending_.grids) {
    dirty_[node].grid = true;
    dirty_[node].capture |= is_captured(node);
    // An op has none, as validation will say.
    must_rebuild_ |= graph_.draft_->nodes[node].kind == NodeKind::op;
    raise(is_captured(node) ? Tier::recapture : Tier::warm, cat(name(node), ": grid changed"));
  }
}

/// A number that a capture has looked at is in its calls; one in device memory is read by every launch.
void HostGraph::Updater::find_dirty_numbers() {
  for (const auto& [node, parameter] : graph_.pending_.numbers) {
    dirty_[node].numbers = true;
    const auto& parameters = graph_.draft_->nodes[node].parameters;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& p) { return p.name == parameter; });
    const bool needs_capture = is_captured(node) && found != parameters.end() && !found->in_device_memory;
    dirty_[node].capture |= needs_capture;
    raise(needs_capture ? Tier::recapture : Tier::hot,
          cat(name(node), ": number ", shown(parameter), " changed"));
  }
}

/// Everybody who holds a pointer to a buffer that lies elsewhere now.
void HostGraph::Updater::find_dirty_holders() {
  const std::set<std::uint32_t>& bindings = graph_.pending_.bindings;
  if (bindings.empty()) return;
  const Graph& graph = graph_.executable_->program->graph;
  raise(Tier::warm, cat("buffer ", shown(graph.buffers[*bindings.begin()].name), " bound elsewhere"));
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (const Pin& pin : graph.nodes[node].pins) {
      if (pin.buffer == no_index || !bindings.contains(pin.buffer)) continue;
      dirty_[node].pointers = true;
      if (!is_captured(node)) continue;
      dirty_[node].capture = true;
      raise(Tier::recapture,
            cat(name(node), ": buffer ", shown(graph.buffers[pin.buffer].name), " bound elsewhere"));
    }
}

void HostGraph::Updater::find_dirty_calls() {
  const Pending& pending = graph_.pending_;
  if (pending.kernels.empty() && pending.captures.empty()) return;
  for (std::uint32_t i = 0; i < graph_.draft_->nodes.size(); ++i) {
    const Node& node = graph_.draft_->nodes[i];
    if (node.kind == NodeKind::kernel && pending.kernels.contains(node.call)) {
      dirty_[i].kernel = true;
      raise(Tier::code, cat("kernel ", shown(node.call), " changed"));
    }
    if (node.kind == NodeKind::captured && pending.captures.contains(node.call)) {
      dirty_[i].capture = true;
      raise(Tier::recapture, cat("capture ", shown(node.call), " changed"));
    }
  }
}

Result<bool> HostGraph::Updater::exchange_ops() {
  if (!graph_.pending_.has_only_ops() || graph_.device_ != nullptr) return false;
  const std::vector<std::uint32_t> nodes(graph_.pending_.ops.begin(), graph_.pending_.ops.end());
  const HostExecutable& exe = *graph_.executable_;
  program_ = description::exchange_ops(*exe.program, graph_.draft_.share(), nodes);
  if (program_ == nullptr) return false;
  Report report;
  add_warnings(*program_, report);
  // Others come from the order, and errors from an update that failed: all is looked at again.
  if (graph_.report_.errors() != 0 || graph_.report_.warnings() != report.warnings()) return false;
  graph_.report_ = std::move(report);
  for (const std::uint32_t node : nodes) {
    patched_.emplace_back(node, TESSERA_TRY(bind_node(*program_, node, exe.memory, graph_.kernels_)));
    ++report_.nodes;
  }
  TESSERA_TRY(exchange_groups(nodes));
  return true;
}

Result<void> HostGraph::Updater::exchange_groups(std::span<const std::uint32_t> nodes) {
  const HostExecutable& exe = *graph_.executable_;
  const auto has_changed = [&](const OpGroup& group) {
    return std::find_first_of(group.nodes.begin(), group.nodes.end(), nodes.begin(), nodes.end()) !=
           group.nodes.end();
  };
  ProgramMaker programs(*program_, graph_.compiler_.get(), graph_.memory_limit_, report_);
  std::vector<std::uint32_t> changed;
  for (std::uint32_t i = 0; i < exe.groups.size(); ++i)
    if (has_changed(exe.grouping.groups[i]))
      changed.push_back(i);
    else
      static_cast<void>(programs.keep(exe.groups[i].program));
  auto groups = TESSERA_TRY(rewrite_groups(*program_, exe.grouping, changed));
  for (std::size_t i = 0; i < changed.size(); ++i) {
    BoundGroup bound = bound_group(program_->graph, groups[i]);
    bound.program = programs.make(groups[i].function);
    exchanged_groups_.push_back({changed[i], std::move(groups[i]), std::move(bound)});
  }
  return {};
}

Result<void> HostGraph::Updater::patch() {
  const HostExecutable& exe = *graph_.executable_;
  if (!graph_.pending_.bindings.empty()) {
    memory_ = exe.memory;
    TESSERA_TRY(memory_->rebind(*exe.program, graph_.bindings_));
  }
  for (const auto& [node, dirty] : dirty_) TESSERA_TRY(patch_node(node, dirty));
  report_.kernels += graph_.pending_.kernels.size();
  return must_rebuild_ ? Result<void>() : commit_patches();
}

Result<void> HostGraph::Updater::patch_node(std::uint32_t node, const Dirty& dirty) {
  const HostExecutable& exe = *graph_.executable_;
  const Program& program = *exe.program;
  ++report_.nodes;
  const bool has_numbers_alone = !dirty.pointers && !dirty.grid && !dirty.kernel && !dirty.capture;
  if (has_numbers_alone && graph_.draft_->nodes[node].kind == NodeKind::kernel)
    return patch_kernel_numbers(node), Result<void>();
  BoundNode bound = exe.nodes[node];
  if (dirty.numbers) TESSERA_TRY(patch_numbers(node, bound));
  if (dirty.grid) bound.grid = graph_.draft_->nodes[node].grid;
  if (dirty.pointers)
    for (std::size_t i = 0; i < bound.arguments.size(); ++i)
      if (const std::uint32_t buffer = program.graph.nodes[node].pins[i].buffer; buffer != no_index)
        bound.arguments[i].data = memory_->data(buffer);
  if (dirty.kernel || dirty.capture)
    if (auto code = bind_code(graph_.draft_->nodes[node], exe.memory, graph_.kernels_, bound); !code)
      return at_node(program, node, std::move(code).error());
  if (dirty.capture) {
    TESSERA_TRY(capture(program, node, bound, graph_.kernels_));
    ++report_.captures;
    if (!can_patch(exe.nodes[node], bound)) {
      raise(Tier::cold, cat(name(node), ": the captured calls are others than before"));
      must_rebuild_ = true;
    }
  }
  patched_.emplace_back(node, std::move(bound));
  return {};
}

/// The change that comes most often: nothing of the node is copied.
void HostGraph::Updater::patch_kernel_numbers(std::uint32_t node) {
  const std::vector<Argument>& arguments = graph_.executable_->nodes[node].arguments;
  for (std::uint32_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_scalar || !graph_.pending_.numbers.contains({node, arguments[i].name})) continue;
    for (const Parameter& parameter : graph_.draft_->nodes[node].parameters)
      if (parameter.name == arguments[i].name) kernel_numbers_.push_back({{node, i}, *parameter.scalar});
    if (arguments[i].device_value == nullptr) continue;
    const double value =
        std::visit([](auto v) { return static_cast<double>(v); }, kernel_numbers_.back().value);
    store_number(reinterpret_cast<std::byte*>(arguments[i].device_value),
                 std::as_bytes(std::span(&value, 1)));
  }
}

/// When the change is made.
void HostGraph::Updater::store_number(std::byte* where, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(),
            stored_numbers_.emplace_back(StoredNumber{where, {}, bytes.size()}).bytes.begin());
}

Result<void> HostGraph::Updater::patch_numbers(std::uint32_t node, BoundNode& bound) {
  std::size_t number = 0;  // of an op
  for (std::size_t i = 0; i < bound.arguments.size(); ++i) {
    Argument& argument = bound.arguments[i];
    if (!argument.is_scalar) continue;
    const std::size_t at = number++;
    if (!graph_.pending_.numbers.contains({node, argument.name})) continue;
    for (const Parameter& parameter : graph_.draft_->nodes[node].parameters)
      if (parameter.name == argument.name) argument.scalar = *parameter.scalar;
    if (!bound.numbers.empty()) {
      bound.numbers[at] = TESSERA_TRY(number_tensor(argument.scalar, argument.dtype));
      if (!bound.cells.empty())
        store_number(bound.cells[i].get(), {bound.numbers[at].array().data, bound.numbers[at].byte_size()});
    }
    if (argument.device_value == nullptr) continue;
    const double value = std::visit([](auto v) { return static_cast<double>(v); }, argument.scalar);
    store_number(reinterpret_cast<std::byte*>(argument.device_value), std::as_bytes(std::span(&value, 1)));
  }
  return {};
}

/// All or none: what a device refuses leaves everything as it was.
Result<void> HostGraph::Updater::commit_patches() {
  const std::lock_guard lock(graph_.launch_mutex_);
  HostExecutable& exe = *graph_.executable_;
  swap_patches(exe);
  auto done = exe.driven.empty() ? hold(exe, exe.held, schedule_changes()) : Result<void>();
  if (done) done = write_numbers();
  if (!done) swap_patches(exe);
  return done;
}

void HostGraph::Updater::swap_patches(HostExecutable& executable) {
  for (auto& [node, bound] : patched_) std::swap(executable.nodes[node], bound);
  for (KernelNumber& number : kernel_numbers_)
    std::swap(executable.nodes[number.which.node].arguments[number.which.argument].scalar, number.value);
  if (memory_) std::swap(executable.memory, *memory_);
  if (program_ != nullptr) std::swap(executable.program, program_);
  for (ExchangedGroup& exchanged : exchanged_groups_) {
    std::swap(executable.grouping.groups[exchanged.index], exchanged.group);
    std::swap(executable.groups[exchanged.index], exchanged.bound);
  }
}

/// Launches that are under way have read what there was.
Result<void> HostGraph::Updater::write_numbers() {
  for (const StoredNumber& number : stored_numbers_) {
    const std::span<const std::byte> bytes(number.bytes.data(), number.size);
    if (graph_.device_ != nullptr)
      TESSERA_TRY(graph_.device_->copy_in(number.where, bytes));
    else
      std::copy(bytes.begin(), bytes.end(), number.where);
  }
  return {};
}

/// Ops read their numbers from memory, as captured nodes those in device memory.
ScheduleChanges HostGraph::Updater::schedule_changes() const {
  ScheduleChanges out;
  for (const auto& [node, dirty] : dirty_)
    if (dirty.pointers || dirty.grid || dirty.kernel || dirty.capture) out.nodes.push_back(node);
  for (const KernelNumber& number : kernel_numbers_) out.numbers.push_back(number.which);
  out.buffers.assign(graph_.pending_.bindings.begin(), graph_.pending_.bindings.end());
  return out;
}

Result<void> HostGraph::Updater::hold(HostExecutable& executable, std::shared_ptr<DeviceSchedule> held,
                                      const ScheduleChanges& changes) {
  GraphDevice* device = executable.memory.device();
  if (device == nullptr) return {};
  if ((held == nullptr || changes.all) && unbound_buffer(executable) != no_index) return {};
  const bool is_first = held == nullptr;
  if (is_first) {
    auto made = device->make_schedule();
    if (!made && made.error().code() != ErrorCode::unsupported) return std::move(made).error();
    if (!made) executable.driven = report_.driven = made.error().message();
    if (!made) return {};
    held = *std::move(made);
  }
  auto done = held->follow(executable, is_first ? ScheduleChanges{.all = true} : changes);
  if (!done && done.error().code() == ErrorCode::unsupported) {
    executable.driven = report_.driven = done.error().message();
    executable.held = nullptr;
    return {};
  }
  if (!done) return std::move(done).error();
  report_.patched += done->patched;
  report_.is_remade = done->is_remade;
  if (!done->refusal.empty()) raise(Tier::cold, cat("not changed in place: ", done->refusal));
  executable.held = std::move(held);
  return {};
}

Result<void> HostGraph::Updater::rebuild() {
  Validation validation =
      validate(graph_.draft_.share(), &graph_.kernels_, {.device_memory = graph_.memory_limit_});
  graph_.report_ = validation.report;
  if (validation.program == nullptr) return validation.report.to_error();
  report_.nodes = report_.captures = 0;
  report_.kernels = graph_.pending_.kernels.size();
  auto next = TESSERA_TRY(make_executable(std::move(validation.program), nullptr));
  if (graph_.executable_ != nullptr && graph_.pending_.structure.empty()) compare_captures(*next);
  return install(std::move(next));
}

/// What validation would have said, of what does not follow from the description alone.
Result<void> HostGraph::Updater::build(PreparedGraph prepared) {
  const Program& program = *prepared.program;
  Report report;
  check_kernels(program.graph, graph_.kernels_, report);
  add_warnings(program, report);
  check_memory(*program.description, program.schedule.memory, {.device_memory = graph_.memory_limit_},
               report);
  graph_.report_ = report;
  if (!report.ok()) return report.to_error();
  raise(Tier::cold, "the first build");
  auto made = prepared.program;
  return install(TESSERA_TRY(make_executable(std::move(made), &prepared)));
}

Result<std::unique_ptr<HostExecutable>> HostGraph::Updater::make_executable(
    std::shared_ptr<const Program> program, PreparedGraph* prepared) {
  return build_executable(std::move(program),
                          {.kernels = graph_.kernels_,
                           .bindings = graph_.bindings_,
                           .compiler = graph_.compiler_.get(),
                           .memory = graph_.memory_limit_,
                           .device = graph_.device_,
                           .threads = graph_.threads_,
                           .previous = graph_.executable_.get(),
                           .prepared = prepared,
                           .keeps_calls = [&](std::uint32_t node) { return keeps_calls(node); }},
                          report_);
}

Result<void> HostGraph::Updater::install(std::unique_ptr<HostExecutable> next) {
  const std::lock_guard lock(graph_.launch_mutex_);
  TESSERA_TRY(hold(*next, graph_.executable_ != nullptr ? graph_.executable_->held : nullptr, {.all = true}));
  graph_.executable_.swap(next);
  return {};
}

bool HostGraph::Updater::keeps_calls(std::uint32_t node) const {
  return graph_.executable_ != nullptr && graph_.pending_.structure.empty() &&
         !graph_.pending_.captures.contains(graph_.draft_->nodes[node].call);
}

/// A resize moves buffers: what captured nodes hold may have changed with it.
void HostGraph::Updater::compare_captures(const HostExecutable& next) {
  for (std::uint32_t i = 0; i < next.nodes.size(); ++i) {
    if (!is_captured(i)) continue;
    const BoundNode& before = graph_.executable_->nodes[i];
    if (!can_patch(before, next.nodes[i]))
      raise(Tier::cold, cat(name(i), ": the captured calls are others than before"));
    else if (!same_arguments(before, next.nodes[i]))
      raise(Tier::recapture, cat(name(i), ": a buffer lies elsewhere or has another shape"));
  }
}
