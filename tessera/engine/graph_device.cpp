#include "tessera/engine/graph_device.h"

#include <map>

#include "tessera/base/text.h"
#include "tessera/describe/code_files.h"
#include "tessera/engine/device_schedule.h"
#include "tessera/op/bound_call.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/memory_limit.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

class OnDevice final : public description::GraphDevice {
 public:
  OnDevice(std::shared_ptr<runtime::Device> device, std::shared_ptr<runtime::MemorySpace> space)
      : device_(std::move(device)), space_(std::move(space)) {}

  std::string_view name() const override { return device_->name(); }
  std::uint64_t memory_bytes() const override {
    const auto* limited = dynamic_cast<const runtime::LimitedMemory*>(space_.get());
    return limited != nullptr ? limited->total_bytes() : 0;
  }
  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    std::byte* memory = TESSERA_TRY(space_->allocate(bytes));
    const auto give_back = [space = space_, bytes](std::byte* held) { space->free(held, bytes); };
    std::shared_ptr<std::byte> out(memory, give_back);
    TESSERA_TRY(space_->clear(memory, bytes));
    return out;
  }
  Result<void> clear(std::byte* at, std::size_t bytes) override { return space_->clear(at, bytes); }
  Result<void> copy_in(std::byte* to, std::span<const std::byte> from) override {
    return space_->copy_in(to, from);
  }
  Result<void> copy_out(const std::byte* from, std::span<std::byte> to) override {
    return space_->copy_out(from, to);
  }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    const std::vector<std::size_t> moved = op::results_over_inputs(call, inputs, results);
    if (moved.empty()) return device_->run(call, inputs, results);
    std::vector<std::shared_ptr<std::byte>> held;
    std::vector<op::Array> apart(results.begin(), results.end());
    for (const std::size_t i : moved) {
      held.push_back(
          TESSERA_TRY(allocate(static_cast<std::size_t>(apart[i].size()) * ir::size_of(apart[i].dtype))));
      apart[i].data = held.back().get();
    }
    TESSERA_TRY(device_->run(call, inputs, apart));
    for (const std::size_t i : moved) TESSERA_TRY(copy(apart[i], results[i]));
    return {};
  }
  Result<std::unique_ptr<description::DeviceSchedule>> make_schedule() override {
    return make_device_schedule(device_);
  }

 private:
  Result<void> copy(const op::Array& from, const op::Array& to) {
    const op::ValueType type{from.dtype, ir::shape_of(std::span<const std::int64_t>(from.shape()))};
    return device_->run(op::CallInfo(*op::find_card("identity"), {&type, 1}, {}), {&from, 1}, {&to, 1});
  }

  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::MemorySpace> space_;
};

}  // namespace

Result<description::GraphDeviceRef> tessera::engine::make_graph_device(
    std::shared_ptr<runtime::Device> device) {
  auto space = device->memory_space();
  if (space == nullptr)
    return Error(ErrorCode::unsupported,
                 cat("device '", device->name(), "' computes in host memory: the graph needs none"));
  return description::GraphDeviceRef(std::make_shared<OnDevice>(std::move(device), std::move(space)));
}

Result<void> tessera::engine::add_kernel_files(description::KernelTable& to,
                                               const description::Description& of) {
  std::map<std::string, const description::Node*> known;
  for (const description::Node& node : of.nodes) {
    if (!node.code) continue;
    const auto [first, is_new] = known.emplace(node.call, &node);
    if (!is_new && first->second->code != node.code)
      return Error(ErrorCode::invalid_argument,
                   cat("kernel '", printable(shortened(node.call, 60)), "' of node '",
                       printable(shortened(node.id, 60)), "' has other code than that of another node"),
                   of.span_of(node.at));
    if (!is_new) continue;
    op::DeviceCall code;
    code.name = node.call;
    code.entry = node.code->entry.empty() ? node.call : node.code->entry;
    code.code = description::code_source(of, node);
    to.add_device_kernel(node.call, {std::move(code), node.code->threads});
  }
  return {};
}

void tessera::engine::add_stream_capture(description::KernelTable& to, std::string name,
                                         std::function<void(const op::StreamCall&)> function) {
  op::DeviceCall code;
  code.name = name;
  code.capture = std::move(function);
  to.add_device_capture(std::move(name), {.call = std::move(code)});
}
