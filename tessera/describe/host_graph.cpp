#include "tessera/describe/host_graph.h"

#include <algorithm>

#include "tessera/base/machine_memory.h"
#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/describe/difference.h"
#include "tessera/describe/host_updater.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Error unknown(std::string_view what, std::string_view id) {
  return Error(ErrorCode::not_found, cat("there is no ", what, " ", shown(id)));
}

/// The number `name` of a node: declared, or one that its op's card has. Null if there is none.
Parameter* number_of(Node& node, std::string_view name) {
  for (Parameter& parameter : node.parameters)
    if (parameter.name == name) return parameter.scalar ? &parameter : nullptr;
  const op::Card* card = node.kind == NodeKind::op ? op::find_card(node.call) : nullptr;
  if (card == nullptr) return nullptr;
  for (const op::Input& input : card->inputs)
    if (input.name == name && input.kind == op::InputKind::scalar)
      return &node.parameters.emplace_back(
          Parameter{.name = std::string(name), .scalar = input.otherwise, .at = node.at});
  return nullptr;
}

/// Notes the thread until the end of the scope.
class Owner {
 public:
  explicit Owner(std::atomic<std::thread::id>& owner) : owner_(owner) { owner_ = std::this_thread::get_id(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { owner_ = std::thread::id(); }

 private:
  std::atomic<std::thread::id>& owner_;
};

/// What there is for a description that nobody set a limit for.
std::uint64_t memory_of(const GraphDevice* device) {
  const std::uint64_t bytes = device != nullptr ? device->memory_bytes() : 0;
  return bytes != 0 ? bytes : machine_memory();
}

}  // namespace

HostGraph::HostGraph(Description description, KernelTable kernels, HostOptions options)
    : draft_(std::move(description)),
      kernels_(std::move(kernels)),
      bindings_(std::move(options.bindings)),
      memory_limit_(options.memory != 0 ? options.memory : memory_of(options.device.get())),
      compiler_(options.device != nullptr ? nullptr : std::move(options.compiler)),
      device_(std::move(options.device)),
      threads_(std::make_shared<SideBySide>(options.threads)),
      profiling_(options.profiling) {
  if (threads_->threads() == 1 || device_ != nullptr) threads_ = nullptr;
  index_draft();
}

Result<std::unique_ptr<HostGraph>> HostGraph::create(Description description, KernelTable kernels,
                                                     HostOptions options) {
  std::unique_ptr<HostGraph> out(
      new HostGraph(std::move(description), std::move(kernels), std::move(options)));
  TESSERA_TRY(out->check_bindings());
  out->pending_.structure = "the first build";
  out->note();
  UpdateReport report = out->update();
  if (report.error) return *std::move(report.error);
  return out;
}

Result<std::unique_ptr<HostGraph>> HostGraph::create(PreparedGraph prepared, KernelTable kernels,
                                                     HostOptions options) {
  std::unique_ptr<HostGraph> out(
      new HostGraph(*prepared.program->description, std::move(kernels), std::move(options)));
  TESSERA_TRY(out->check_bindings());
  const std::lock_guard lock(out->edit_mutex_);
  const Owner owner(out->updating_thread_);
  UpdateReport report = Updater(*out).run(std::move(prepared));
  if (report.error) return *std::move(report.error);
  return out;
}

Result<void> HostGraph::check_bindings() const {
  for (const auto& [name, memory] : bindings_) {
    const std::uint32_t buffer = TESSERA_TRY(draft_buffer(name));
    if (draft_->buffers[buffer].lifetime != Lifetime::external)
      return Error(ErrorCode::invalid_argument,
                   cat("buffer ", shown(name), " is not external, it cannot be bound"));
  }
  return {};
}

void HostGraph::index_draft() {
  node_names_.clear();
  buffer_names_.clear();
  for (std::uint32_t i = 0; i < draft_->nodes.size(); ++i) node_names_.emplace(draft_->nodes[i].id, i);
  for (std::uint32_t i = 0; i < draft_->buffers.size(); ++i) buffer_names_.emplace(draft_->buffers[i].id, i);
}

Result<std::uint32_t> HostGraph::draft_node(std::string_view id) const {
  const auto found = node_names_.find(std::string(id));
  if (found == node_names_.end()) return unknown("node", id);
  return found->second;
}

Result<std::uint32_t> HostGraph::draft_buffer(std::string_view id) const {
  const auto found = buffer_names_.find(std::string(id));
  if (found == buffer_names_.end()) return unknown("buffer", id);
  return found->second;
}

Result<void> HostGraph::set_number(std::string_view node, std::string_view parameter, ScalarValue value) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  const std::uint32_t index = TESSERA_TRY(draft_node(node));
  Parameter* number = number_of(draft_.edit().nodes[index], parameter);
  if (number == nullptr)
    return Error(ErrorCode::not_found, cat("node ", shown(node), " has no number ", shown(parameter)));
  const bool is_integer = std::holds_alternative<std::int64_t>(*number->scalar);
  const Dtype dtype = is_integer && !number->dtype ? Dtype::i64 : number_dtype(index, *number);
  if (!fits(value, dtype))
    return Error(ErrorCode::invalid_argument, cat("node ", shown(node), ", parameter ", shown(parameter),
                                                  ": the number does not fit dtype ", to_string(dtype)));
  if (number->in_device_memory && !is_exact_double(value))
    return Error(ErrorCode::invalid_argument,
                 cat("node ", shown(node), ", parameter ", shown(parameter), ": the integer ",
                     std::get<std::int64_t>(value), " is in device memory, where numbers are f64"));
  number->scalar = is_integer
                       ? ScalarValue(std::visit([](auto v) { return static_cast<std::int64_t>(v); }, value))
                       : value;
  pending_.numbers.emplace(index, parameter);
  note();
  return {};
}

/// As the plan has it, if it has the node; a node that is new is checked when it is built.
Dtype HostGraph::number_dtype(std::uint32_t node, const Parameter& number) const {
  if (number.dtype) return *number.dtype;
  if (!pending_.structure.empty() || pending_.ops.contains(node) || executable_ == nullptr) return Dtype::f64;
  for (const Argument& argument : executable_->nodes[node].arguments)
    if (argument.name == number.name && draft_->nodes[node].kind == NodeKind::op) return argument.dtype;
  return Dtype::f64;
}

Result<void> HostGraph::set_grid(std::string_view node, std::array<std::int64_t, 3> grid) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  const std::uint32_t index = TESSERA_TRY(draft_node(node));
  if (draft_->nodes[index].kind == NodeKind::op)
    return Error(ErrorCode::invalid_argument, cat("node ", shown(node), " is op ",
                                                  shown(draft_->nodes[index].call), ", which has no grid"));
  for (std::int64_t size : grid)
    if (size < 1)
      return Error(ErrorCode::invalid_argument,
                   cat("node ", shown(node), ": a grid of ", size, " is not positive"));
  draft_.edit().nodes[index].grid = grid;
  pending_.grids.insert(index);
  note();
  return {};
}

Result<void> HostGraph::bind(std::string_view buffer, std::span<std::byte> memory,
                             std::optional<Extents> shape) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  const std::uint32_t index = TESSERA_TRY(draft_buffer(buffer));
  Buffer& b = draft_.edit().buffers[index];
  if (b.lifetime != Lifetime::external)
    return Error(ErrorCode::invalid_argument,
                 cat("buffer ", shown(buffer), " is not external, it cannot be bound"));
  if (shape && *shape != b.shape) {
    b.shape = *std::move(shape);
    pending_.shapes.insert(index);
  }
  bindings_.insert_or_assign(std::string(buffer), memory);
  pending_.bindings.insert(index);
  note();
  return {};
}

Result<void> HostGraph::resize(std::string_view buffer, Extents shape) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  const std::uint32_t index = TESSERA_TRY(draft_buffer(buffer));
  if (draft_->buffers[index].lifetime == Lifetime::external)
    return Error(ErrorCode::invalid_argument,
                 cat("buffer ", shown(buffer), " is external: bind other memory to change its shape"));
  draft_.edit().buffers[index].shape = std::move(shape);
  pending_.shapes.insert(index);
  note();
  return {};
}

Result<void> HostGraph::replace_kernel(std::string name, KernelFunction kernel) {
  return replace_kernel(
      std::move(name),
      KernelLoader([kernel = std::move(kernel)]() -> Result<KernelFunction> { return kernel; }));
}

Result<void> HostGraph::replace_kernel(std::string name, KernelLoader loader) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  TESSERA_TRY(check_called(NodeKind::kernel, name));
  kernels_.add_loader(name, std::move(loader));
  pending_.kernels.insert(std::move(name));
  note();
  return {};
}

Result<void> HostGraph::replace_kernel(std::string name, DeviceCode code) {
  TESSERA_TRY(check_caller());
  if (code.call.code == nullptr)
    return Error(ErrorCode::invalid_argument, cat("kernel ", shown(name), " is given no code"));
  const std::lock_guard lock(edit_mutex_);
  TESSERA_TRY(check_called(NodeKind::kernel, name));
  kernels_.add_device_kernel(name, std::move(code));
  pending_.kernels.insert(std::move(name));
  note();
  return {};
}

Result<void> HostGraph::replace_capture(std::string name, CaptureFunction capture) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  TESSERA_TRY(check_called(NodeKind::captured, name));
  kernels_.add_capture(name, std::move(capture));
  pending_.captures.insert(std::move(name));
  note();
  return {};
}

Result<void> HostGraph::replace_capture(std::string name, DeviceCode code) {
  TESSERA_TRY(check_caller());
  if (!code.call.capture)
    return Error(ErrorCode::invalid_argument, cat("capture ", shown(name), " is given no function"));
  const std::lock_guard lock(edit_mutex_);
  TESSERA_TRY(check_called(NodeKind::captured, name));
  kernels_.add_device_capture(name, std::move(code));
  pending_.captures.insert(std::move(name));
  note();
  return {};
}

/// A name nobody calls yet may be called by the next description; one that is in no table is a mistake.
Result<void> HostGraph::check_called(NodeKind kind, std::string_view name) const {
  const bool is_kernel = kind == NodeKind::kernel;
  if (is_kernel ? kernels_.has_kernel(name) : kernels_.has_capture(name)) return {};
  const auto& nodes = draft_->nodes;
  if (std::any_of(nodes.begin(), nodes.end(),
                  [&](const Node& node) { return node.kind == kind && node.call == name; }))
    return {};
  Error out = is_kernel ? unknown("kernel", name) : unknown("capture", name);
  const auto node = node_names_.find(std::string(name));
  if (node != node_names_.end() && nodes[node->second].kind == kind)
    return std::move(out).note(cat("node ", shown(name), " calls ", shown(nodes[node->second].call)));
  return std::move(out).note(cat("there are ", is_kernel ? kernels_.names() : kernels_.capture_names()));
}

Result<void> HostGraph::set_description(Description description) {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  // Against the draft, so that what is pending already stays so.
  const Difference difference = compare(*draft_, description);
  draft_ = SharedDescription(std::move(description));
  if (!difference.structure.empty()) index_draft();
  if (pending_.structure.empty()) pending_.structure = difference.structure;
  for (const auto& [node, parameter] : difference.numbers)
    pending_.numbers.emplace(node, draft_->nodes[node].parameters[parameter].name);
  pending_.shapes.insert(difference.shapes.begin(), difference.shapes.end());
  pending_.grids.insert(difference.grids.begin(), difference.grids.end());
  pending_.ops.insert(difference.ops.begin(), difference.ops.end());
  if (!difference.is_empty()) note();
  return {};
}

Result<void> HostGraph::check_caller() const {
  const auto self = acting_thread();
  if (launching_thread_ != self && updating_thread_ != self) return {};
  return Error(ErrorCode::invalid_argument, "a function of a graph cannot call the graph that runs it");
}

UpdateReport HostGraph::update() {
  if (auto allowed = check_caller(); !allowed) return {.error = std::move(allowed).error()};
  const std::lock_guard lock(edit_mutex_);
  const Owner owner(updating_thread_);
  if (!is_noted_) return {.error = last_error_};
  is_noted_ = false;
  UpdateReport report = Updater(*this).run();
  last_error_ = report.error;
  if (!report.error) pending_ = {};
  return report;
}

Result<LaunchReport> HostGraph::launch() {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(launch_mutex_);
  const Owner owner(launching_thread_);
  return run(*executable_, profiling_);
}

Result<Description> HostGraph::description() const {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  return *draft_;
}

Result<std::shared_ptr<const Program>> HostGraph::program() const {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(launch_mutex_);
  return executable_->program;
}

Result<Report> HostGraph::report() const {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(edit_mutex_);
  return report_;
}

Result<std::uint32_t> HostGraph::running_buffer(std::string_view id) const {
  const auto& buffers = executable_->program->graph.buffers;
  const auto found =
      std::find_if(buffers.begin(), buffers.end(), [&](const GraphBuffer& b) { return b.name == id; });
  if (found == buffers.end()) return unknown("buffer", id);
  return static_cast<std::uint32_t>(found - buffers.begin());
}

Result<std::uint64_t> HostGraph::count(std::string_view buffer) const {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(launch_mutex_);
  const std::uint32_t index = TESSERA_TRY(running_buffer(buffer));
  const AppendCounter* counter = executable_->memory.counter(index);
  if (counter == nullptr)
    return Error(ErrorCode::invalid_argument, cat("nothing appends to buffer ", shown(buffer)));
  return std::min(counter->asked(),
                  static_cast<std::uint64_t>(executable_->program->graph.buffers[index].shape[0]));
}

Result<std::vector<std::byte>> HostGraph::content(std::string_view buffer) const {
  TESSERA_TRY(check_caller());
  const std::lock_guard lock(launch_mutex_);
  const std::uint32_t index = TESSERA_TRY(running_buffer(buffer));
  const GraphBuffer& b = executable_->program->graph.buffers[index];
  if (b.lifetime != Lifetime::graph)
    return Error(ErrorCode::invalid_argument, cat("buffer ", shown(buffer), " is not a graph buffer"));
  const std::byte* data = executable_->memory.data(index);
  std::vector<std::byte> out(b.bytes);
  if (device_ != nullptr) {
    TESSERA_TRY(device_->copy_out(data, out));
  } else {
    std::copy(data, data + b.bytes, out.begin());
  }
  return out;
}
