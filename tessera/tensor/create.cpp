#include "tessera/tensor/create.h"

#include <cmath>
#include <cstring>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/op/wide.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using detail::fail;
using detail::value_at;
using engine::Engine;

namespace {

std::shared_ptr<Engine> engine_of(const std::shared_ptr<Engine>& given, const std::string& device,
                                  Here here) {
  auto engine = given != nullptr ? given : Engine::default_engine();
  if (!device.empty() && device != engine->device().name())
    fail(here, ErrorCode::unsupported,
         cat("device '", printable(device),
             "': a device belongs to an engine, and that of this tensor computes on '",
             engine->device().name(), "'; give an engine of the other device as `engine`"));
  return engine;
}
std::shared_ptr<Engine> engine_of(const CreateOptions& options, Here here) {
  return engine_of(options.engine, options.device, here);
}

std::size_t byte_count(std::string_view function, const Shape& shape, Dtype dtype, Here here) {
  for (std::int64_t dim : shape)
    if (dim < 0)
      fail(here, ErrorCode::shape,
           cat(function, ": shape [", join(shape, ", "), "] has the negative size ", dim));
  const auto count = checked_product(shape);
  const auto bytes =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(dtype))) : std::nullopt;
  if (!bytes)
    fail(here, ErrorCode::shape, cat(function, ": a tensor of shape [", join(shape, ", "), "] is too large"));
  return static_cast<std::size_t>(*bytes);
}

void check_rank(const Shape& shape, Here here) {
  if (shape.size() > op::max_rank)
    fail(here, ErrorCode::shape,
         cat("a tensor of rank ", shape.size(), " was asked for, at most ", op::max_rank, " is supported"));
}

Tensor leaf(const CreateOptions& options, const Shape& shape, Ref<runtime::Buffer> buffer, Here here) {
  check_rank(shape, here);
  engine::Storage storage{std::move(buffer), op::contiguous({shape.begin(), shape.end()})};
  return Tensor::adopt(engine::make_leaf(engine_of(options, here), options.dtype, shape, std::move(storage),
                                         detail::caller_of(here)));
}

/// Numbers nobody else gets: as many counter values as there are elements.
Tensor random(const char* name, double a, double b, const Shape& shape, const CreateOptions& options,
              Here here) {
  const auto engine = engine_of(options, here);
  const auto state =
      engine->take_random(byte_count(name, shape, options.dtype, here) / ir::size_of(options.dtype));
  detail::CallOperands operands;
  operands.add(Operand(a, here)).add(Operand(b, here));
  operands.add(Operand(static_cast<std::int64_t>(state.seed), here))
      .add(Operand(static_cast<std::int64_t>(state.offset), here));
  return detail::call(detail::card(name), operands,
                      {{"shape", ir::shape_of(shape)}, {"dtype", options.dtype}}, engine);
}

}  // namespace

Tensor tessera::full(Shape shape, double value, CreateOptions options, Here here) {
  byte_count("full", shape, options.dtype, here);
  static const op::Card& card = detail::card("full");
  return detail::call(card, detail::CallOperands().add(Operand(value, here)),
                      {{"shape", ir::shape_of(shape)}}, engine_of(options, here), options.dtype);
}

Tensor tessera::zeros(Shape shape, CreateOptions options, Here here) {
  return full(std::move(shape), 0, std::move(options), here);
}
Tensor tessera::ones(Shape shape, CreateOptions options, Here here) {
  return full(std::move(shape), 1, std::move(options), here);
}

Tensor tessera::arange(std::int64_t count, ArangeOptions options, Here here) {
  byte_count("arange", {count}, options.dtype, here);
  for (const double number : {options.start, options.step})
    if (!ir::is_float(options.dtype) && number != std::floor(number))
      fail(here, cat("arange: ", number, " is no ", options.dtype));
  static const op::Card& card = detail::card("arange");
  return detail::call(
      card, detail::CallOperands().add(Operand(options.start, here)).add(Operand(options.step, here)),
      {{"count", ir::Shape{count}}}, engine_of(options.engine, options.device, here), options.dtype);
}

Tensor tessera::eye(std::int64_t n, EyeOptions options, Here here) {
  const Shape shape{n, options.columns < 0 ? n : options.columns};
  byte_count("eye", shape, options.dtype, here);
  static const op::Card& card = detail::card("eye");
  return detail::call(
      card, {}, {{"shape", ir::shape_of(shape)}, {"diagonal", options.diagonal}, {"dtype", options.dtype}},
      engine_of(options.engine, options.device, here));
}

Tensor tessera::rand(Shape shape, CreateOptions options, Here here) {
  return random("random_uniform", 0, 1, shape, options, here);
}
Tensor tessera::randn(Shape shape, CreateOptions options, Here here) {
  return random("random_normal", 0, 1, shape, options, here);
}

Tensor tessera::from_bytes(std::span<const std::byte> bytes, Shape shape, CreateOptions options, Here here) {
  const std::size_t needed = byte_count("from_bytes", shape, options.dtype, here);
  if (bytes.size() != needed)
    fail(here, ErrorCode::shape,
         cat("from_bytes: a ", options.dtype, " tensor of shape [", join(shape, ", "), "] has ", needed,
             " bytes, got ", bytes.size()));
  auto buffer = value_at(here, engine_of(options, here)->allocate(needed));
  value_at(here, runtime::write_bytes(*buffer, bytes));
  return leaf(options, shape, std::move(buffer), here);
}

Tensor tessera::from_memory(void* data, Shape shape, std::function<void()> release, CreateOptions options,
                            Here here) {
  const std::size_t bytes = byte_count("from_memory", shape, options.dtype, here);
  if (data == nullptr && bytes > 0) fail(here, "from_memory: the memory is null");
  if (reinterpret_cast<std::uintptr_t>(data) % ir::size_of(options.dtype) != 0)
    fail(here, cat("from_memory: the memory is not aligned for ", options.dtype));
  check_rank(shape, here);
  options.engine = engine_of(options, here);
  auto buffer = runtime::Buffer::wrap(data, bytes, std::move(release));
  if (options.engine->has_host_memory()) return leaf(options, shape, std::move(buffer), here);
  auto copy = value_at(
      here,
      options.engine->copy_in({options.dtype, op::contiguous({shape.begin(), shape.end()}), buffer->data()}));
  return leaf(options, shape, std::move(copy.buffer), here);
}

Tensor tessera::constant(double value, CreateOptions options, Here here) {
  std::byte element[8];
  op::storer<double>(options.dtype)(element, 0, 1, 1, &value);
  auto buffer = value_at(here, engine_of(options, here)->allocate(ir::size_of(options.dtype)));
  value_at(here, runtime::write_bytes(*buffer, std::span(element, ir::size_of(options.dtype))));
  Tensor out = leaf(options, {}, std::move(buffer), here);
  out.node()->set(engine::Node::is_constant);
  return out;
}
