#include "tessera/tensor/create.h"

#include <cstring>
#include <utility>

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

void check_rank(std::string_view function, const Shape& shape, Here here) {
  if (shape.size() > op::max_rank)
    fail(here, ErrorCode::shape,
         cat(function, ": a tensor of rank ", shape.size(), " was asked for, at most ", op::max_rank,
             " is supported"));
}

engine::Operand operand_of(Number number) {
  return number.is_real() ? engine::Operand::of(number.real()) : engine::Operand::of(number.integer());
}

void check_number(std::string_view function, Number number, Dtype dtype, Here here) {
  const engine::Operand operand = operand_of(number);
  if (!engine::fits(operand, dtype)) fail(here, cat(function, ": ", engine::misfit(operand, dtype)));
}

Tensor leaf(const CreateOptions& options, const Shape& shape, Ref<runtime::Buffer> buffer, Here here) {
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

Tensor detail::filled(std::string_view function, const Shape& shape, Number value,
                      const CreateOptions& options, Here here) {
  byte_count(function, shape, options.dtype, here);
  check_rank(function, shape, here);
  check_number(function, value, options.dtype, here);
  static const op::Card& card = detail::card("full");
  return detail::call(card, detail::CallOperands().add(Operand(value, here)),
                      {{"shape", ir::shape_of(shape)}}, engine_of(options, here), options.dtype);
}

Tensor tessera::full(Shape shape, Number value, CreateOptions options, Here here) {
  return detail::filled("full", shape, value, options, here);
}
Tensor tessera::zeros(Shape shape, CreateOptions options, Here here) {
  return detail::filled("zeros", shape, 0, options, here);
}
Tensor tessera::ones(Shape shape, CreateOptions options, Here here) {
  return detail::filled("ones", shape, 1, options, here);
}

namespace {

std::int64_t whole(Number number, Here here) {
  if (!number.is_real()) return number.integer();
  check_number("arange", number, Dtype::i64, here);
  return static_cast<std::int64_t>(number.real());
}

/// Fails unless the first and the last number of a range of integers fit its dtype.
void check_range(std::int64_t count, const ArangeOptions& options, Here here) {
  const std::int64_t start = whole(options.start, here), step = whole(options.step, here);
  check_number("arange", start, options.dtype, here);
  if (count == 0) return;
  const auto way = checked_mul<std::int64_t>(step, count - 1);
  const auto last = way ? checked_add(start, *way) : std::nullopt;
  if (!last)
    fail(here, cat("arange: ", count, " numbers from ", start, " on in steps of ", step, " do not fit ",
                   options.dtype));
  check_number("arange", *last, options.dtype, here);
}

}  // namespace

Tensor tessera::arange(std::int64_t count, ArangeOptions options, Here here) {
  byte_count("arange", {count}, options.dtype, here);
  if (!ir::is_float(options.dtype)) {
    check_range(count, options, here);
    if (ir::is_unsigned(options.dtype) && whole(options.step, here) < 0) {
      const Dtype dtype = std::exchange(options.dtype, Dtype::i64);
      return arange(count, std::move(options), here).cast(dtype, here);
    }
  }
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

namespace {

Tensor copied(std::span<const std::byte> bytes, const Shape& shape, const CreateOptions& options, Here here) {
  auto buffer = value_at(here, engine_of(options, here)->allocate(bytes.size()));
  value_at(here, runtime::write_bytes(*buffer, bytes));
  return leaf(options, shape, std::move(buffer), here);
}

}  // namespace

Tensor tessera::from_bytes(std::span<const std::byte> bytes, Shape shape, CreateOptions options, Here here) {
  const std::size_t needed = byte_count("from_bytes", shape, options.dtype, here);
  check_rank("from_bytes", shape, here);
  if (bytes.size() != needed)
    fail(here, ErrorCode::shape,
         cat("from_bytes: a ", options.dtype, " tensor of shape [", join(shape, ", "), "] has ", needed,
             " bytes, got ", bytes.size()));
  return copied(bytes, shape, options, here);
}

Tensor tessera::detail::from_elements(const char* function, std::span<const std::byte> elements, Shape shape,
                                      CreateOptions options, Here here) {
  const std::size_t needed = byte_count(function, shape, options.dtype, here);
  check_rank(function, shape, here);
  const std::size_t width = ir::size_of(options.dtype);
  if (elements.size() != needed)
    fail(here, ErrorCode::shape,
         cat(function, ": a tensor of shape [", join(shape, ", "), "] has ", needed / width,
             " elements, got ", elements.size() / width));
  return copied(elements, shape, options, here);
}

Tensor tessera::from_memory(void* data, Shape shape, std::function<void()> release, CreateOptions options,
                            Here here) {
  const std::size_t bytes = byte_count("from_memory", shape, options.dtype, here);
  if (data == nullptr && bytes > 0) fail(here, "from_memory: the memory is null");
  if (reinterpret_cast<std::uintptr_t>(data) % ir::size_of(options.dtype) != 0)
    fail(here, cat("from_memory: the memory is not aligned for ", options.dtype));
  check_rank("from_memory", shape, here);
  options.engine = engine_of(options, here);
  auto buffer = runtime::Buffer::wrap(data, bytes, std::move(release));
  if (options.engine->has_host_memory()) return leaf(options, shape, std::move(buffer), here);
  auto copy = value_at(
      here,
      options.engine->copy_in({options.dtype, op::contiguous({shape.begin(), shape.end()}), buffer->data()}));
  return leaf(options, shape, std::move(copy.buffer), here);
}

Tensor tessera::constant(Number value, CreateOptions options, Here here) {
  check_number("constant", value, options.dtype, here);
  std::byte element[8];
  const op::SignedWide whole = value.is_real() ? 0 : value.integer();
  const double real = value.is_real() ? value.real() : static_cast<double>(whole.v);
  if (value.is_real() || ir::is_float(options.dtype))
    op::storer<double>(options.dtype)(element, 0, 1, 1, &real);
  else
    op::storer<op::SignedWide>(options.dtype)(element, 0, 1, 1, &whole);
  auto buffer = value_at(here, engine_of(options, here)->allocate(ir::size_of(options.dtype)));
  value_at(here, runtime::write_bytes(*buffer, std::span(element, ir::size_of(options.dtype))));
  Tensor out = leaf(options, {}, std::move(buffer), here);
  out.node()->set(engine::Node::is_constant);
  return out;
}
