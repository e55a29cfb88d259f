#include "tessera/describe/node_call.h"

#include <bit>

using namespace tessera;
using namespace tessera::description;
using op::DeviceArgument;

namespace {

/// A call of code with the card that says so.
struct CodeCall {
  op::DeviceCall call;
  op::DeviceCard card{call};

  explicit CodeCall(op::DeviceCall code) : call(std::move(code)) {}
  CodeCall(const CodeCall&) = delete;
  CodeCall& operator=(const CodeCall&) = delete;
};

class CodeCallWriter {
 public:
  explicit CodeCallWriter(const DeviceCode& code)
      : owner_(std::make_shared<CodeCall>(code.call)), call_(owner_->call) {
    shape_.block = code.threads;
  }

  op::BoundCallRef run(const BoundNode& node) {
    for (const Argument& argument : node.arguments) add(argument);
    shape_.grid = node.grid;
    call_.launch = [shape = std::move(shape_)](std::span<const Extents>,
                                               std::span<const Extents>) -> Result<op::LaunchShape> {
      return shape;
    };
    for (const op::Array& input : out_.inputs)
      out_.types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
    out_.card = std::shared_ptr<const op::Card>(owner_, &owner_->card);
    return std::make_shared<const op::BoundCall>(std::move(out_));
  }

 private:
  void add(const Argument& argument) {
    if (argument.is_scalar && argument.device_value != nullptr && call_.capture)
      return add_array(DeviceArgument::Kind::input, out_.inputs, argument.name,
                       {Dtype::f64, op::contiguous({}), reinterpret_cast<std::byte*>(argument.device_value)});
    if (argument.is_scalar) return add_value(argument.name, argument.dtype, number_bits(argument));
    if (argument.data == nullptr) return add_value(argument.name, Dtype::i64, 0);
    const bool is_read = argument.access == Access::read;
    auto& arrays = is_read ? out_.inputs : out_.results;
    add_array(is_read ? DeviceArgument::Kind::input : DeviceArgument::Kind::result, arrays, argument.name,
              {argument.dtype, op::contiguous(argument.shape), argument.data});
    if (argument.access != Access::append) return;
    add_array(DeviceArgument::Kind::result, out_.results, argument.name,
              {Dtype::u64, op::contiguous({}), argument.device_counter});
    if (!call_.capture) add_value(argument.name, Dtype::i64, argument.shape[0]);
  }

  void add_array(DeviceArgument::Kind kind, std::vector<op::Array>& arrays, const std::string& name,
                 op::Array array) {
    call_.arguments.push_back({.kind = kind,
                               .index = static_cast<std::uint32_t>(arrays.size()),
                               .dtype = array.dtype,
                               .name = name});
    arrays.push_back(std::move(array));
  }
  void add_value(const std::string& name, Dtype dtype, std::int64_t bits) {
    call_.arguments.push_back({.kind = DeviceArgument::Kind::size,
                               .index = static_cast<std::uint32_t>(shape_.sizes.size()),
                               .dtype = dtype,
                               .name = name});
    shape_.sizes.push_back(bits);
  }

  std::shared_ptr<CodeCall> owner_;
  op::DeviceCall& call_;
  op::LaunchShape shape_;
  op::BoundCall out_;
};

op::BoundCallRef op_call(const GraphNode& node, const BoundNode& bound) {
  op::BoundCall out;
  out.card = std::shared_ptr<const op::Card>(std::shared_ptr<const void>(), node.card);
  out.attributes = node.attributes;
  for (std::size_t i = 0; i < bound.arguments.size(); ++i) {
    const Argument& argument = bound.arguments[i];
    op::Array array{argument.dtype, op::contiguous(argument.shape), argument.data};
    if (argument.is_scalar) array.data = bound.cells[i].get();
    if (writes(argument.access)) {
      out.results.push_back(std::move(array));
    } else {
      out.types.push_back({array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape()))});
      out.inputs.push_back(std::move(array));
    }
  }
  return std::make_shared<const op::BoundCall>(std::move(out));
}

}  // namespace

std::int64_t tessera::description::number_bits(const Argument& number) {
  return std::visit(
      [&](auto value) {
        return ir::is_float(number.dtype) ? std::bit_cast<std::int64_t>(static_cast<double>(value))
                                          : static_cast<std::int64_t>(value);
      },
      number.scalar);
}

/// For a pin that appends, code has three: rows, counter, capacity.
std::uint32_t tessera::description::code_argument(const BoundNode& bound, std::size_t argument) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < argument; ++i)
    out += bound.arguments[i].data != nullptr && bound.arguments[i].access == Access::append ? 3 : 1;
  return out;
}

op::BoundCallRef tessera::description::node_call(const Program& program, std::uint32_t node,
                                                 const BoundNode& bound) {
  if (program.description->nodes[node].kind == NodeKind::op) return op_call(program.graph.nodes[node], bound);
  return CodeCallWriter(*bound.code).run(bound);
}
