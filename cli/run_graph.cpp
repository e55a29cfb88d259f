#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "cli/run_options.h"
#include "tessera/base/run_meter.h"
#include "tessera/base/text.h"
#include "tessera/describe/sequence_uses.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_device.h"
#include "tessera/engine/graph_package.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

/// Options that mean something to programs alone.
Result<void> check_options(const RunOptions& options) {
  const std::string_view name = !options.parameters.empty() ? "--parameter"
                                : options.work              ? "--work"
                                : !options.trace.empty()    ? "--trace"
                                                            : "";
  if (name.empty()) return {};
  return wrong(name, ": this is not for the plan of a graph description");
}

/// What of the external buffers is given, and what of all that outlive a launch is shown.
struct Interface {
  std::vector<std::uint32_t> inputs, outputs;
};

Interface interface_of(const description::Program& program) {
  Interface out;
  for (const description::Use& use : description::launch_uses(program)) {
    const bool is_external = program.graph.buffers[use.buffer].lifetime == description::Lifetime::external;
    if (is_external && use.looks) out.inputs.push_back(use.buffer);
    if (use.writes) out.outputs.push_back(use.buffer);
  }
  return out;
}

Result<std::vector<HostTensor>> read_buffers(const description::Program& program, const Interface& interface,
                                             const TensorSourceOptions& options) {
  InputSpecs specs;
  for (const std::uint32_t buffer : interface.inputs) {
    const description::GraphBuffer& b = program.graph.buffers[buffer];
    const op::ValueType type{b.dtype, ir::shape_of(b.shape)};
    specs.inputs.push_back({b.name, type, op::to_text(type)});
  }
  auto out = TESSERA_TRY(read_inputs(
      specs, options, [](const std::string& source, std::size_t) -> Result<std::optional<HostTensor>> {
        return wrong("--input: ", in_quotes(source), " is neither .npy, .npz nor raw:…");
      }));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const auto& b = program.graph.buffers[interface.inputs[i]];
        out[i].dtype() != b.dtype || out[i].shape() != b.shape)
      return wrong("--input: ", in_quotes(b.name), " is ", out[i].dtype(), "[", join(out[i].shape(), ", "),
                   "], expected ", specs.inputs[i].type_text);
  return out;
}

/// The external buffers of a graph, on the host or on its device.
class ExternalBuffers {
 public:
  /// Those that are no inputs are zero.
  static Result<ExternalBuffers> create(const description::Program& program,
                                        description::GraphDeviceRef device) {
    ExternalBuffers out;
    out.device_ = std::move(device);
    for (const description::GraphBuffer& buffer : program.graph.buffers) {
      if (buffer.lifetime != description::Lifetime::external) continue;
      const HostTensor tensor = TESSERA_TRY(HostTensor::allocate(buffer.dtype, buffer.shape));
      out.tensors_.emplace(buffer.name, tensor);
      if (out.device_ == nullptr) continue;
      out.far_[buffer.name] = TESSERA_TRY(out.device_->allocate(std::max<std::size_t>(buffer.bytes, 1)));
    }
    return out;
  }

  Result<void> set(const std::string& buffer, const HostTensor& value) {
    const HostTensor& tensor = tensors_.at(buffer);
    op::copy_elements(value.array(), tensor.array());
    if (device_ == nullptr) return {};
    return device_->copy_in(far_.at(buffer).get(), {tensor.array().data, tensor.byte_size()});
  }
  [[nodiscard]] Result<HostTensor> get(const std::string& buffer) const {
    const HostTensor& tensor = tensors_.at(buffer);
    if (device_ != nullptr)
      TESSERA_TRY(device_->copy_out(far_.at(buffer).get(), {tensor.array().data, tensor.byte_size()}));
    return tensor;
  }
  [[nodiscard]] description::Bindings bindings() const {
    description::Bindings out;
    for (const auto& [name, tensor] : tensors_)
      out[name] = {device_ == nullptr ? tensor.array().data : far_.at(name).get(), tensor.byte_size()};
    return out;
  }

 private:
  description::GraphDeviceRef device_;  // null: the host
  std::map<std::string, HostTensor> tensors_;
  std::map<std::string, std::shared_ptr<std::byte>> far_;
};

/// The rows that were appended.
Result<HostTensor> first_rows(const HostTensor& tensor, std::uint64_t rows) {
  op::Extents shape = tensor.shape();
  shape[0] = static_cast<std::int64_t>(rows);
  const HostTensor out = TESSERA_TRY(HostTensor::allocate(tensor.dtype(), shape));
  std::copy_n(tensor.array().data, out.byte_size(), out.array().data);
  return out;
}

Result<HostTensor> output_of(const description::HostGraph& graph, const description::GraphBuffer& buffer,
                             const ExternalBuffers& external) {
  HostTensor out;
  if (buffer.lifetime == description::Lifetime::external) {
    out = TESSERA_TRY(external.get(buffer.name));
  } else {
    const auto bytes = TESSERA_TRY(graph.content(buffer.name));
    out = TESSERA_TRY(HostTensor::allocate(buffer.dtype, buffer.shape));
    std::copy(bytes.begin(), bytes.end(), out.array().data);
  }
  if (!buffer.is_appended) return out;
  return first_rows(out, TESSERA_TRY(graph.count(buffer.name)));
}

void warn_of_overflows(const description::LaunchReport& report) {
  for (const description::Overflow& lost : report.overflows)
    std::fprintf(stderr, "tessera: warning: append buffer %s has %llu rows, %llu were appended\n",
                 description::shown(lost.buffer).c_str(), static_cast<unsigned long long>(lost.capacity),
                 static_cast<unsigned long long>(lost.asked));
}

/// Adds the times of a launch; nodes stand for kernels.
void add_times(const description::Profile& from, const description::Description& d, engine::Profile& to) {
  to.level = from.level;
  ++to.evaluations;
  to.time += from.total;
  to.blocks.resize(from.blocks.size());
  for (std::size_t i = 0; i < from.blocks.size(); ++i) {
    to.blocks[i].block = block_path(d, from.blocks[i].block);
    to.blocks[i].runs += from.blocks[i].runs;
    to.blocks[i].time += from.blocks[i].time;
  }
  to.kernels.resize(from.kernels.size());
  for (std::size_t i = 0; i < from.kernels.size(); ++i) {
    const description::Node& node = d.nodes[i];
    const SourceSpan at = d.span_of(node.at);
    to.kernels[i].name = from.kernels[i].node;
    to.kernels[i].ops = {{node.call, at.file, at.line}};
    to.kernels[i].block = block_path(d, node.block);
    to.kernels[i].runs += from.kernels[i].runs;
    to.kernels[i].time += from.kernels[i].time;
  }
}

/// Memory for the external buffers, with what was given for those that are looked at.
Result<ExternalBuffers> bound_buffers(const description::Program& program, const Interface& interface,
                                      const RunOptions& options, description::GraphDeviceRef device) {
  const auto inputs = TESSERA_TRY(read_buffers(program, interface, options.inputs));
  auto out = TESSERA_TRY(ExternalBuffers::create(program, std::move(device)));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    TESSERA_TRY(out.set(program.graph.buffers[interface.inputs[i]].name, inputs[i]));
  return out;
}

/// As often as the options say.
Result<RunOutcome> launch_all(description::HostGraph& graph, runtime::Device& device,
                              const description::Description& description, const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  RunOutcome out;
  for (int i = 0; i < options.repeat; ++i) {
    RunMeter meter({.seconds = options.seconds.value_or(std::numeric_limits<double>::infinity())});
    const RunMeter::Scope scope(options.seconds ? &meter : nullptr);
    const auto begin = Clock::now();
    const auto report = TESSERA_TRY(graph.launch());
    TESSERA_TRY(device.synchronize());
    out.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    warn_of_overflows(report);
    add_times(report.profile, description, out.profile);
  }
  return out;
}

}  // namespace

Result<RunOutcome> tessera::cli::run_graph(engine::GraphPackage package, const RunOptions& options) {
  TESSERA_TRY(check_options(options));
  const auto program = package.program;
  const auto device =
      TESSERA_TRY(engine::find_device(options.device.empty() ? package.device : options.device));
  description::GraphDeviceRef far;
  if (device->memory_space() != nullptr) far = TESSERA_TRY(engine::make_graph_device(device));
  // The kernels first: what the inputs should be matters to those who can run it.
  const auto graph = TESSERA_TRY(
      engine::make_graph(std::move(package), {}, {.profiling = options.profiling(), .device = far}, device));
  const Interface interface = interface_of(*program);
  const auto external = TESSERA_TRY(bound_buffers(*program, interface, options, far));
  for (const auto& [name, memory] : external.bindings()) TESSERA_TRY(graph->bind(name, memory));
  if (auto report = graph->update(); report.error) return *std::move(report.error);
  RunOutcome out = TESSERA_TRY(launch_all(*graph, *device, *program->description, options));
  for (const std::uint32_t buffer : interface.outputs) {
    const description::GraphBuffer& b = program->graph.buffers[buffer];
    HostTensor tensor = TESSERA_TRY(output_of(*graph, b, external));
    out.outputs.push_back({.name = b.name, .tensors = {std::move(tensor)}});
  }
  return out;
}
