#include "tessera/describe/host_memory.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Error binding_error(const GraphBuffer& buffer, std::string_view problem) {
  return Error(ErrorCode::invalid_argument, cat("external buffer ", shown(buffer.name), " ", problem));
}

Result<std::byte*> bound_memory(const GraphBuffer& buffer, std::span<std::byte> memory) {
  alignas(8) static std::byte nothing[8];  // where a buffer without elements lies: a null pointer is unbound
  if (buffer.bytes == 0) return nothing;
  if (memory.size() < buffer.bytes)
    return binding_error(buffer, cat("needs ", buffer.bytes, " bytes, it is bound to ", memory.size()));
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % ir::size_of(buffer.dtype) != 0)
    return binding_error(buffer, cat("is bound to memory that is not aligned for ", to_string(buffer.dtype)));
  return memory.data();
}

std::vector<bool> written_buffers(const Graph& graph) {
  std::vector<bool> out(graph.buffers.size());
  for (const GraphNode& node : graph.nodes)
    for (const Pin& pin : node.pins)
      if (pin.buffer != no_index && writes(pin.declared.access)) out[pin.buffer] = true;
  for (std::uint32_t buffer : graph.index_buffer)
    if (buffer != no_index) out[buffer] = true;
  return out;
}

/// Memory under two names would be used in an order that nobody has checked.
Result<void> check_overlaps(const Graph& graph, const std::vector<std::byte*>& data) {
  std::vector<std::uint32_t> bound;
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].lifetime == Lifetime::external && data[i] != nullptr && graph.buffers[i].bytes != 0)
      bound.push_back(i);
  std::sort(bound.begin(), bound.end(), [&](auto a, auto b) { return std::less<>()(data[a], data[b]); });
  const auto written = written_buffers(graph);
  const std::byte* end = nullptr;          // of all so far
  const std::byte* written_end = nullptr;  // of the written ones so far
  for (std::uint32_t i : bound) {
    const std::byte* begin = data[i];
    if ((written[i] && std::less<>()(begin, end)) || std::less<>()(begin, written_end))
      return binding_error(graph.buffers[i],
                           "is bound to memory that another is bound to, and one is written");
    end = std::max(end, begin + graph.buffers[i].bytes, std::less<>());
    if (written[i]) written_end = std::max(written_end, begin + graph.buffers[i].bytes, std::less<>());
  }
  return {};
}

}  // namespace

Result<HostMemory> HostMemory::allocate(const Program& program, const Bindings& bindings,
                                        const HostMemory* previous, GraphDeviceRef device) {
  const Graph& graph = program.graph;
  const MemoryPlan& plan = program.schedule.memory;
  HostMemory out;
  out.device_ = std::move(device);
  out.data_.resize(graph.buffers.size());
  out.counters_.resize(graph.buffers.size());
  TESSERA_TRY(out.take_own(program, previous));
  if (plan.shared_bytes != 0) {
    out.shared_ = TESSERA_TRY(out.zeros(Dtype::u8, Extents{static_cast<std::int64_t>(plan.shared_bytes)}));
    out.allocated_ += plan.shared_bytes;
  }
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i)
    if (plan.homes[i].kind == Home::Kind::shared)
      out.data_[i] = out.shared_.array().data + plan.homes[i].offset;
  TESSERA_TRY(out.take_counters(program));
  TESSERA_TRY(out.rebind(program, bindings));
  return out;
}

Result<op::HostTensor> HostMemory::zeros(Dtype dtype, const Extents& shape) const {
  if (device_ == nullptr) return op::HostTensor::allocate(dtype, shape);
  const auto bytes = static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(dtype);
  auto memory = TESSERA_TRY(device_->allocate(bytes));
  const std::byte* begin = memory.get();
  return op::HostTensor::wrap(dtype, shape, begin, std::move(memory));
}

Result<void> HostMemory::take_counters(const Program& program) {
  const Graph& graph = program.graph;
  if (device_ != nullptr) device_counters_.resize(graph.buffers.size());
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i) {
    if (!graph.buffers[i].is_appended) continue;
    append_buffers_.push_back(i);
    counters_[i] = std::make_shared<AppendCounter>();
    if (device_ != nullptr) device_counters_[i] = TESSERA_TRY(device_->allocate(device_counter_bytes));
  }
  return {};
}

Result<void> HostMemory::take_own(const Program& program, const HostMemory* previous) {
  const Graph& graph = program.graph;
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i) {
    const GraphBuffer& buffer = graph.buffers[i];
    if (buffer.lifetime != Lifetime::graph) continue;
    const auto* kept = previous == nullptr ? nullptr : [&]() -> const op::HostTensor* {
      const auto found = previous->own_.find(buffer.name);
      if (found == previous->own_.end()) return nullptr;
      const bool is_same = found->second.dtype() == buffer.dtype && found->second.shape() == buffer.shape;
      return is_same ? &found->second : nullptr;
    }();
    if (kept == nullptr) allocated_ += buffer.bytes;
    op::HostTensor tensor = kept != nullptr ? *kept : TESSERA_TRY(zeros(buffer.dtype, buffer.shape));
    data_[i] = tensor.array().data;
    own_.emplace(buffer.name, std::move(tensor));
  }
  return {};
}

Result<void> HostMemory::rebind(const Program& program, const Bindings& bindings) {
  std::vector<std::byte*> data = data_;
  const Graph& graph = program.graph;
  for (std::uint32_t i = 0; i < graph.buffers.size(); ++i) {
    if (graph.buffers[i].lifetime != Lifetime::external) continue;
    const auto found = bindings.find(graph.buffers[i].name);
    data[i] = found == bindings.end() ? nullptr : TESSERA_TRY(bound_memory(graph.buffers[i], found->second));
  }
  TESSERA_TRY(check_overlaps(graph, data));
  data_ = std::move(data);
  return {};
}
