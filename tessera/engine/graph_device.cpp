#include "tessera/engine/graph_device.h"

#include <bit>
#include <map>

#include "tessera/base/text.h"
#include "tessera/describe/code_files.h"

using namespace tessera;
using namespace tessera::engine;
using description::Access;
using description::Arguments;
using op::DeviceArgument;

namespace {

class OnDevice final : public description::GraphDevice {
 public:
  OnDevice(std::shared_ptr<runtime::Device> device, std::shared_ptr<runtime::MemorySpace> space)
      : device_(std::move(device)), space_(std::move(space)) {}

  std::string_view name() const override { return device_->name(); }
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
    return device_->run(call, inputs, results);
  }

 private:
  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::MemorySpace> space_;
};

/// A node as a call of code: the arguments of one launch.
class NodeCall {
 public:
  explicit NodeCall(op::DeviceCall code) : call_(std::move(code)) {}

  void add(const description::Argument& argument) {
    if (argument.is_scalar) return add_value(argument.name, argument.dtype, bits_of(argument));
    if (argument.data == nullptr) return add_value(argument.name, op::Dtype::i64, 0);
    const bool is_read = argument.access == Access::read;
    auto& arrays = is_read ? inputs_ : results_;
    add_array(is_read ? DeviceArgument::Kind::input : DeviceArgument::Kind::result, arrays, argument.name,
              {argument.dtype, op::contiguous(argument.shape), argument.data});
    if (argument.access != Access::append) return;
    add_array(DeviceArgument::Kind::result, results_, argument.name,
              {op::Dtype::u64, op::contiguous({}), argument.device_counter});
    if (!call_.capture) add_value(argument.name, op::Dtype::i64, argument.shape[0]);
  }

  Result<void> run(description::GraphDevice& device, const op::LaunchShape& shape) {
    call_.launch = [&](std::span<const op::Extents>,
                       std::span<const op::Extents>) -> Result<op::LaunchShape> {
      op::LaunchShape out = shape;
      out.sizes = values_;
      return out;
    };
    const op::DeviceCard card(call_);
    op::ValueTypes types;
    for (const op::Array& input : inputs_)
      types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
    return device.run(op::CallInfo(card, types, {}), inputs_, results_);
  }

 private:
  static std::int64_t bits_of(const description::Argument& argument) {
    // What is in device memory may have changed since the call was recorded.
    if (argument.device_value != nullptr && ir::is_float(argument.dtype))
      return std::bit_cast<std::int64_t>(*argument.device_value);
    return std::visit(
        [&](auto value) {
          return ir::is_float(argument.dtype) ? std::bit_cast<std::int64_t>(static_cast<double>(value))
                                              : static_cast<std::int64_t>(value);
        },
        argument.scalar);
  }

  void add_array(DeviceArgument::Kind kind, std::vector<op::Array>& arrays, const std::string& name,
                 op::Array array) {
    call_.arguments.push_back({.kind = kind,
                               .index = static_cast<std::uint32_t>(arrays.size()),
                               .dtype = array.dtype,
                               .name = name});
    arrays.push_back(std::move(array));
  }
  void add_value(const std::string& name, op::Dtype dtype, std::int64_t bits) {
    call_.arguments.push_back({.kind = DeviceArgument::Kind::size,
                               .index = static_cast<std::uint32_t>(values_.size()),
                               .dtype = dtype,
                               .name = name});
    values_.push_back(bits);
  }

  op::DeviceCall call_;
  std::vector<op::Array> inputs_, results_;
  std::vector<std::int64_t> values_;
};

/// Runs code on the arguments of a node; what goes wrong is thrown, as functions of nodes do.
void run_code(const op::DeviceCall& code, const Arguments& arguments,
              const std::array<std::int64_t, 3>& threads, description::GraphDevice& device) {
  NodeCall call(code);
  for (std::size_t i = 0; i < arguments.size(); ++i) call.add(arguments.argument(i));
  value_or_throw(call.run(device, {.grid = arguments.grid(), .block = threads}));
}

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
                                               const description::GraphDeviceRef& device,
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
    const std::string path = description::code_path(of, node);
    op::DeviceCall code;
    code.name = node.call;
    code.entry = node.code->entry.empty() ? node.call : node.code->entry;
    code.code = op::KernelSource::from_file(path, op::form_of_file(path));
    const auto run = [device, code, threads = node.code->threads](description::KernelCall& call) {
      run_code(code, call, threads, *device);
    };
    to.add_loader(
        node.call,
        [run, source = code.code]() -> Result<description::KernelFunction> {
          TESSERA_TRY(source->current());
          return run;
        },
        description::Side::device);
  }
  return {};
}

void tessera::engine::add_stream_capture(description::KernelTable& to,
                                         const description::GraphDeviceRef& device, std::string name,
                                         std::function<void(const op::StreamCall&)> function) {
  op::DeviceCall code;
  code.name = name;
  code.capture = std::move(function);
  to.add_capture(
      name,
      [device, code](description::CaptureCall& call) {
        std::vector<description::Argument> arguments;
        for (std::size_t i = 0; i < call.size(); ++i) arguments.push_back(call.argument(i));
        call.record(code.name, [device, code, arguments, grid = call.grid()] {
          run_code(code, Arguments(arguments, grid), {1, 1, 1}, *device);
        });
      },
      description::Side::device);
}
