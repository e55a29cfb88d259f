#include "tessera/describe/host_executor.h"

#include <bit>
#include <cstring>

#include "tessera/base/run_meter.h"
#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/node_call.h"
#include "tessera/describe/profile_clock.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// The first element of a buffer as an integer; a float is 1 unless it is 0.
std::int64_t first_element(const GraphBuffer& buffer, const std::byte* data) {
  if (ir::is_float(buffer.dtype)) {
    double value = 0;
    op::loader<double>(buffer.dtype)(data, 0, 1, 1, &value);
    return value != 0 ? 1 : 0;
  }
  op::SignedWide value;
  op::loader<op::SignedWide>(buffer.dtype)(data, 0, 1, 1, &value);
  return value.v;
}

/// Bits of a double for a float, of an i64 for the others.
std::uint64_t bits_of(const ScalarValue& value, Dtype dtype) {
  return std::visit(
      [&](auto v) {
        return ir::is_float(dtype) ? std::bit_cast<std::uint64_t>(static_cast<double>(v))
                                   : static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
      },
      value);
}

class Runner {
 public:
  Runner(HostExecutable& executable, ProfilingLevel level)
      : exe_(executable),
        graph_(executable.program->graph),
        d_(*executable.program->description),
        clock_(d_, level) {}

  Result<LaunchReport> run() {
    TESSERA_TRY(exe_.held != nullptr ? run_held() : run_steps());
    for (const std::uint32_t buffer : exe_.memory.append_buffers()) TESSERA_TRY(note_overflow(buffer));
    return std::move(out_);
  }

 private:
  Result<void> run_steps() {
    if (const std::uint32_t buffer = unbound_buffer(exe_); buffer != no_index)
      return Error(ErrorCode::invalid_argument,
                   cat("external buffer ", shown(graph_.buffers[buffer].name), " is not bound"),
                   d_.span_of(d_.buffers[buffer].at));
    for (const std::uint32_t buffer : exe_.memory.append_buffers()) TESSERA_TRY(reset_counter(buffer));
    clock_.begin();
    TESSERA_TRY(run_scope(0));
    out_.profile = clock_.end();
    if (out_.profile.level == ProfilingLevel::per_kernel) name_joined_nodes();
    return {};
  }

  /// All at once: what is on the device waits for each other there.
  Result<void> run_held() {
    const ProfilingLevel level = clock_.level();
    const Measuring measuring = level >= ProfilingLevel::per_block ? Measuring::steps
                                : level == ProfilingLevel::none    ? Measuring::nothing
                                                                   : Measuring::total;
    std::vector<NodeTime> times;
    clock_.begin();
    TESSERA_TRY(exe_.held->launch(measuring, times));
    for (const NodeTime& time : times) clock_.add(time.node, time.time);
    out_.profile = clock_.end();
    if (level == ProfilingLevel::per_kernel) name_region_nodes();
    return {};
  }

  /// What is in a region is measured as one.
  void name_region_nodes() {
    for (const Step& step : exe_.program->schedule.sequences[0].steps) {
      if (step.kind != StepKind::region) continue;
      const std::vector<std::uint32_t> nodes = nodes_in(*exe_.program, step.index);
      if (!nodes.empty()) out_.profile.kernels[nodes[0]].region = d_.regions[step.index].id;
      for (std::size_t i = 1; i < nodes.size(); ++i)
        out_.profile.kernels[nodes[i]].joined_with = d_.nodes[nodes[0]].id;
    }
  }

  // Regions nest at most as deep as validation allows, so that this may recurse.
  Result<void> run_scope(std::uint32_t scope) {
    const std::span<const Unit> units = exe_.grouping.units[scope];
    for (std::size_t begin = 0, end = 0; begin < units.size(); begin = end) {
      while (end < units.size() && units[end].level == units[begin].level) ++end;
      TESSERA_TRY(run_level(scope, units.subspan(begin, end - begin)));
    }
    return {};
  }

  Result<void> run_unit(std::uint32_t scope, const Unit& unit) {
    return unit.is_group ? run_group(unit.index) : run_step(step_of(scope, unit));
  }
  [[nodiscard]] const Step& step_of(std::uint32_t scope, const Unit& unit) const {
    return exe_.program->schedule.sequences[scope].steps[unit.index];
  }

  // ---- side by side

  /// Units that do not wait for each other. The error is the first one's that failed.
  Result<void> run_level(std::uint32_t scope, std::span<const Unit> units) {
    const std::vector<std::size_t> together = host_functions(scope, units);
    std::vector<Result<void>> done(together.size());
    if (!together.empty())
      exe_.threads->run(together.size(),
                        [&](std::size_t i) { done[i] = run_node(step_of(scope, units[together[i]]).index); });
    for (std::size_t i = 0, next = 0; i < units.size(); ++i)
      if (next < together.size() && together[next] == i)
        TESSERA_TRY(std::move(done[next++]));
      else
        TESSERA_TRY(run_unit(scope, units[i]));
    return {};
  }

  /// Which of the units run at the same time; none if that would not pay.
  [[nodiscard]] std::vector<std::size_t> host_functions(std::uint32_t scope,
                                                        std::span<const Unit> units) const {
    std::vector<std::size_t> out;
    if (exe_.threads == nullptr || units.size() < 2) return out;
    constexpr std::chrono::nanoseconds least =
        std::chrono::microseconds(30);  // to wake a thread and wait for it
    std::size_t long_ones = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (units[i].is_group || step_of(scope, units[i]).kind != StepKind::node) continue;
      const BoundNode& node = exe_.nodes[step_of(scope, units[i]).index];
      if (!node.is_side_by_side) continue;
      out.push_back(i);
      long_ones += node.last_time.get() >= least ? 1 : 0;
    }
    if (long_ones < 2) out.clear();
    return out;
  }

  Result<void> run_step(const Step& step) {
    switch (step.kind) {
      case StepKind::node:
        return run_node(step.index);
      case StepKind::region:
        return run_region(step.index);
      case StepKind::reset_counter:
        TESSERA_TRY(note_overflow(step.index));
        return reset_counter(step.index);
      case StepKind::zero:
        return zero(exe_.memory.data(step.index), graph_.buffers[step.index].bytes);
    }
    return {};
  }

  // ---- groups of op nodes

  void name_joined_nodes() {
    for (std::size_t g = 0; g < exe_.groups.size(); ++g) {
      const std::vector<std::uint32_t>& nodes = exe_.grouping.groups[g].nodes;
      if (exe_.groups[g].program == nullptr) continue;
      for (std::size_t i = 1; i < nodes.size(); ++i)
        out_.profile.kernels[nodes[i]].joined_with = d_.nodes[nodes[0]].id;
    }
  }

  Result<void> run_group(std::uint32_t index) {
    const OpGroup& group = exe_.grouping.groups[index];
    if (exe_.groups[index].program != nullptr) {
      const auto timer = clock_.time_node(group.nodes[0]);
      if (run_program(group, exe_.groups[index])) return {};
    }
    // One by one gives the same error at its node, or the results if only the program is wrong.
    for (const std::uint32_t step : group.steps)
      TESSERA_TRY(run_step(exe_.program->schedule.sequences[group.scope].steps[step]));
    return {};
  }

  Result<void> run_program(const OpGroup& group, BoundGroup& bound) {
    for (std::size_t i = 0; i < group.inputs.size(); ++i)
      bound.inputs[i].data = exe_.memory.data(group.inputs[i]);
    for (std::size_t i = 0; i < group.results.size(); ++i)
      bound.results[i].data = exe_.memory.data(group.results[i]);
    for (std::size_t i = 0; i < group.numbers.size(); ++i) {
      const Argument& argument = exe_.nodes[group.numbers[i].node].arguments[group.numbers[i].pin];
      bound.numbers[i] = bits_of(argument.scalar, argument.dtype);
    }
    try {
      return bound.program->run(bound.inputs, bound.numbers, bound.results);
    } catch (const Exception& e) {
      return e.error();
    }
  }

  Result<void> run_region(std::uint32_t index) {
    const Region& region = d_.regions[index];
    const std::uint32_t body = graph_.first_branch[index];
    switch (region.kind) {
      case RegionKind::if_:
        if (TESSERA_TRY(condition(index)) != 0) return run_scope(body);
        return region.branches == 2 ? run_scope(body + 1) : Result<void>();
      case RegionKind::switch_: {
        const std::int64_t branch = TESSERA_TRY(condition(index));
        const bool exists = branch >= 0 && branch < region.branches;
        return exists ? run_scope(body + static_cast<std::uint32_t>(branch)) : Result<void>();
      }
      case RegionKind::while_:
        return run_while(index);
      case RegionKind::for_:
        return run_for(index);
    }
    return {};
  }

  Result<void> run_while(std::uint32_t index) {
    const Region& region = d_.regions[index];
    for (std::int64_t i = 0; TESSERA_TRY(condition(index)) != 0; ++i) {
      if (i == region.limit) return beyond_limit(*exe_.program, index);
      TESSERA_TRY(run_iteration(index, i));
    }
    return {};
  }

  Result<void> run_for(std::uint32_t index) {
    const Region& region = d_.regions[index];
    const std::int64_t count = region.count ? *region.count : TESSERA_TRY(condition(index));
    if (count > region.limit) return beyond_limit(*exe_.program, index, count);
    for (std::int64_t i = 0; i < count; ++i) {
      if (const std::uint32_t buffer = graph_.index_buffer[index]; buffer != no_index) {
        const op::SignedWide value = i;
        std::byte element[8] = {};
        op::storer<op::SignedWide>(graph_.buffers[buffer].dtype)(element, 0, 1, 1, &value);
        TESSERA_TRY(write(exe_.memory.data(buffer),
                          std::span(element).first(ir::size_of(graph_.buffers[buffer].dtype))));
      }
      TESSERA_TRY(run_iteration(index, i));
    }
    return {};
  }

  /// The body of a loop, if there is time left; at its end the error names the loop.
  Result<void> run_iteration(std::uint32_t index, std::int64_t iteration) {
    auto done = RunMeter::check();
    if (done) done = run_scope(graph_.first_branch[index]);
    const RunMeter* meter = RunMeter::current();
    if (done || meter == nullptr || !meter->has_ended(done.error())) return done;
    const Region& region = d_.regions[index];
    return Error(ErrorCode::limit,
                 cat(to_string(region.kind), " region ", shown(region.id), ", iteration ", iteration, ": ",
                     done.error().message()),
                 d_.span_of(region.at));
  }

  [[nodiscard]] Result<std::int64_t> condition(std::uint32_t region) const {
    const GraphBuffer& buffer = graph_.buffers[graph_.condition[region]];
    std::byte element[8] = {};
    TESSERA_TRY(read(exe_.memory.data(graph_.condition[region]),
                     std::span(element).first(ir::size_of(buffer.dtype))));
    return first_element(buffer, element);
  }

  // ---- memory of the host or of a device

  [[nodiscard]] Result<void> read(const std::byte* from, std::span<std::byte> to) const {
    if (GraphDevice* device = exe_.memory.device()) return device->copy_out(from, to);
    std::memcpy(to.data(), from, to.size());
    return {};
  }
  Result<void> write(std::byte* to, std::span<const std::byte> from) {
    if (GraphDevice* device = exe_.memory.device()) return device->copy_in(to, from);
    std::memcpy(to, from.data(), from.size());
    return {};
  }
  Result<void> zero(std::byte* at, std::size_t bytes) {
    if (bytes == 0) return {};
    if (GraphDevice* device = exe_.memory.device()) return device->clear(at, bytes);
    std::memset(at, 0, bytes);
    return {};
  }
  Result<void> reset_counter(std::uint32_t buffer) {
    AppendCounter* counter = exe_.memory.counter(buffer);
    if (counter == nullptr) return {};
    counter->reset();
    std::byte* far = exe_.memory.device_counter(buffer);
    return far == nullptr ? Result<void>() : zero(far, device_counter_bytes);
  }

  Result<void> run_node(std::uint32_t index) {
    TESSERA_TRY(RunMeter::check());
    const auto timer = clock_.time_node(index);
    Result<void> done =
        exe_.threads != nullptr && exe_.nodes[index].is_side_by_side ? timed_call(index) : call(index);
    if (!done) return at_node(*exe_.program, index, std::move(done).error());
    return {};
  }

  Result<void> timed_call(std::uint32_t index) {
    const auto begin = std::chrono::steady_clock::now();
    Result<void> done = call(index);
    exe_.nodes[index].last_time.set(std::chrono::steady_clock::now() - begin);
    return done;
  }

  /// What a function throws becomes the error of its node.
  Result<void> call(std::uint32_t index) {
    BoundNode& node = exe_.nodes[index];
    try {
      if (GraphDevice* device = exe_.memory.device()) {
        const op::BoundCallRef call = node_call(*exe_.program, index, node);
        return device->run(call->info(), call->inputs, call->results);
      }
      if (d_.nodes[index].kind == NodeKind::op) return call_op(index, node);
      if (d_.nodes[index].kind == NodeKind::captured) {
        if (node.calls == nullptr) return Error(ErrorCode::internal, "the node was not captured");
        for (const CaptureCall::Call& one : *node.calls) one.run();
        return {};
      }
      KernelCall arguments(node.arguments, node.grid);
      (*node.kernel)(arguments);
      return {};
    } catch (const Exception& e) {
      return e.error();
    } catch (const std::exception& e) {
      return Error(ErrorCode::device, e.what());
    } catch (...) {
      return Error(ErrorCode::device, "the function threw something that is no std::exception");
    }
  }

  Result<void> call_op(std::uint32_t index, const BoundNode& bound) {
    const GraphNode& node = graph_.nodes[index];
    std::vector<op::Array> inputs, results;
    std::vector<op::ValueType> types;
    std::size_t next_number = 0;
    for (const Argument& argument : bound.arguments) {
      op::Array array{argument.dtype, op::contiguous(argument.shape), argument.data};
      if (argument.is_scalar) array = bound.numbers[next_number++].array();
      if (writes(argument.access)) {
        results.push_back(std::move(array));
      } else {
        types.push_back({array.dtype, ir::shape_of(array.shape())});
        inputs.push_back(std::move(array));
      }
    }
    const op::CallInfo call(*node.card, types, node.attributes);
    return op::run_reference(call, inputs, results);
  }

  Result<void> note_overflow(std::uint32_t buffer) {
    AppendCounter* counter = exe_.memory.counter(buffer);
    if (counter == nullptr) return {};
    std::uint64_t most = 0;
    if (const std::byte* far = exe_.memory.device_counter(buffer)) {
      std::uint64_t counted[2] = {};
      TESSERA_TRY(read(far, std::as_writable_bytes(std::span(counted))));
      counter->set(counted[0]);
      most = counted[1];
    }
    most = std::max(most, counter->asked());
    const auto capacity = static_cast<std::uint64_t>(graph_.buffers[buffer].shape[0]);
    if (most > capacity) out_.overflows.push_back({graph_.buffers[buffer].name, most, capacity});
    return {};
  }

  HostExecutable& exe_;
  const Graph& graph_;
  const Description& d_;
  ProfileClock clock_;
  LaunchReport out_;
};

}  // namespace

Error tessera::description::beyond_limit(const Program& program, std::uint32_t index, std::int64_t count) {
  const Region& region = program.description->regions[index];
  const std::string problem = count == 0
                                  ? cat("did not end within its limit of ", region.limit, " iterations")
                                  : cat("has ", count, " iterations, beyond its limit of ", region.limit);
  return Error(ErrorCode::limit, cat(to_string(region.kind), " region ", shown(region.id), " ", problem),
               program.description->span_of(region.at));
}

std::vector<std::uint32_t> tessera::description::nodes_in(const Program& program, std::uint32_t region) {
  const Graph& graph = program.graph;
  std::vector<std::uint32_t> out;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (std::uint32_t scope = graph.nodes[node].scope; scope != 0; scope = graph.scopes[scope].parent)
      if (graph.scopes[scope].region == region) {
        out.push_back(node);
        break;
      }
  return out;
}

std::uint32_t tessera::description::unbound_buffer(const HostExecutable& executable) {
  const auto& buffers = executable.program->graph.buffers;
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].lifetime == Lifetime::external && buffers[i].is_used &&
        executable.memory.data(i) == nullptr)
      return i;
  return no_index;
}

Error tessera::description::at_node(const Program& program, std::uint32_t node, Error error) {
  const Node& n = program.description->nodes[node];
  const std::string block = n.block.empty() ? "" : cat(" of block ", shown(n.block));
  Error out(error.code(), cat("node ", shown(n.id), block, ": ", error.message()),
            error.span().known() ? error.span() : program.description->span_of(n.at));
  for (const std::string& note : error.notes()) static_cast<void>(std::move(out).note(note));
  return out;
}

Result<op::HostTensor> tessera::description::number_tensor(const ScalarValue& value, Dtype dtype) {
  op::HostTensor out = TESSERA_TRY(op::HostTensor::allocate(dtype, {}));
  op::visit_wide(dtype, [&](auto* wide) {
    using Wide = std::remove_pointer_t<decltype(wide)>;
    const Wide stored = std::visit([](auto v) { return static_cast<Wide>(v); }, value);
    op::storer<Wide>(dtype)(out.array().data, 0, 1, 1, &stored);
  });
  return out;
}

namespace {

/// `code` is what a kernel or a capture of that name has for devices.
Result<void> check_side(const HostMemory& memory, const DeviceCodeRef& code, std::string_view what,
                        std::string_view name) {
  if ((code != nullptr) == (memory.device() != nullptr)) return {};
  if (memory.device() == nullptr)
    return Error(ErrorCode::unsupported, cat(what, " ", shown(name), " is for a device, the graph has none"));
  return Error(
      ErrorCode::unsupported,
      cat(what, " ", shown(name), " is a function of the host, the graph is on ", memory.device()->name()));
}

/// Memory of the device with the bytes of a number.
Result<std::shared_ptr<std::byte>> number_cell(GraphDevice& device, std::span<const std::byte> number) {
  auto out = TESSERA_TRY(device.allocate(sizeof(std::uint64_t)));
  TESSERA_TRY(device.copy_in(out.get(), number));
  return out;
}

/// A number that is read from memory: by an op, and where the node says so.
Result<void> bind_number(const Pin& pin, const HostMemory& memory, bool is_op, std::size_t i, BoundNode& to,
                         Argument& argument) {
  GraphDevice* device = memory.device();
  double& value = (*to.device_numbers)[i];
  value = std::visit([](auto v) { return static_cast<double>(v); }, argument.scalar);
  if (pin.declared.in_device_memory && !is_op) {
    argument.device_value = &value;
    if (device != nullptr) {
      to.cells[i] = TESSERA_TRY(number_cell(*device, std::as_bytes(std::span(&value, 1))));
      argument.device_value = reinterpret_cast<double*>(to.cells[i].get());
    }
  }
  if (!is_op) return {};
  to.numbers.push_back(TESSERA_TRY(number_tensor(argument.scalar, argument.dtype)));
  if (device != nullptr)
    to.cells[i] =
        TESSERA_TRY(number_cell(*device, {to.numbers.back().array().data, to.numbers.back().byte_size()}));
  return {};
}

}  // namespace

Result<void> tessera::description::bind_code(const Node& node, const HostMemory& memory,
                                             const KernelTable& kernels, BoundNode& to) {
  const bool is_kernel = node.kind == NodeKind::kernel;
  DeviceCodeRef code = is_kernel ? kernels.device_kernel(node.call) : kernels.device_capture(node.call);
  TESSERA_TRY(check_side(memory, code, is_kernel ? "kernel" : "capture", node.call));
  to.code = std::move(code);
  if (is_kernel && to.code == nullptr) to.kernel = TESSERA_TRY(kernels.load(node.call));
  to.is_side_by_side = to.kernel != nullptr;  // of a capture, what it says
  to.last_time = BoundNode().last_time;
  return {};
}

Result<BoundNode> tessera::description::bind_node(const Program& program, std::uint32_t index,
                                                  const HostMemory& memory, const KernelTable& kernels) {
  const Graph& graph = program.graph;
  const GraphNode& node = graph.nodes[index];
  const Node& described = program.description->nodes[index];
  BoundNode out;
  out.grid = described.grid;
  out.device_numbers = std::make_shared<std::vector<double>>(node.pins.size());
  if (memory.device() != nullptr) out.cells.resize(node.pins.size());
  if (described.kind != NodeKind::op)
    if (auto bound = bind_code(described, memory, kernels, out); !bound)
      return at_node(program, index, std::move(bound).error());
  for (std::size_t i = 0; i < node.pins.size(); ++i) {
    const Pin& pin = node.pins[i];
    Argument argument{.name = pin.declared.name, .access = pin.declared.access};
    if (pin.is_scalar()) {
      argument.is_scalar = true;
      argument.scalar = *pin.declared.scalar;
      argument.dtype = scalar_dtype(graph, node, pin);
      TESSERA_TRY(bind_number(pin, memory, node.card != nullptr, i, out, argument));
    } else if (pin.buffer != no_index) {
      argument.dtype = graph.buffers[pin.buffer].dtype;
      argument.shape = graph.buffers[pin.buffer].shape;
      argument.data = memory.data(pin.buffer);
      argument.counter = memory.counter(pin.buffer);
      argument.device_counter = memory.device_counter(pin.buffer);
    }
    out.arguments.push_back(std::move(argument));
  }
  return out;
}

Result<void> tessera::description::capture(const Program& program, std::uint32_t index, BoundNode& bound,
                                           const KernelTable& kernels) {
  if (bound.code != nullptr) return {};  // the device captures
  const GraphNode& node = program.graph.nodes[index];
  for (std::size_t i = 0; i < node.pins.size(); ++i)
    if (node.pins[i].buffer != no_index && bound.arguments[i].data == nullptr) return {};
  const CaptureFunction* function = kernels.find_capture(program.description->nodes[index].call);
  TESSERA_CHECK(function != nullptr, "validation looks captures up");
  CaptureCall call(bound.arguments, bound.grid);
  try {
    (*function)(call);
  } catch (const Exception& e) {
    return at_node(program, index, e.error());
  } catch (const std::exception& e) {
    return at_node(program, index, Error(ErrorCode::device, e.what()));
  } catch (...) {
    return at_node(program, index,
                   Error(ErrorCode::device, "the capture threw something that is no std::exception"));
  }
  bound.is_side_by_side = call.is_side_by_side();
  bound.calls = std::make_shared<const std::vector<CaptureCall::Call>>(call.take_calls());
  return {};
}

Result<LaunchReport> tessera::description::run(HostExecutable& executable, ProfilingLevel level) {
  return Runner(executable, level).run();
}
