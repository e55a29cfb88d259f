#include "tessera/tensor/create.h"

#include <cstring>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using engine::Engine;

namespace {

std::shared_ptr<Engine> engine_of(const CreateOptions& options) {
  auto engine = options.engine != nullptr ? options.engine : Engine::default_engine();
  if (!options.device.empty() && options.device != engine->device().name())
    throw Exception(Error(ErrorCode::unsupported, cat("there is no device '", printable(options.device), "'; this engine has '", engine->device().name(), "'")));
  return engine;
}

std::size_t byte_count(const Shape& shape, Dtype dtype) {
  for (std::int64_t dim : shape)
    if (dim < 0) throw Exception(Error(ErrorCode::shape, cat("shape [", join(shape, ", "), "] has the negative size ", dim)));
  const auto count = checked_product(shape);
  const auto bytes = count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(dtype))) : std::nullopt;
  if (!bytes) throw Exception(Error(ErrorCode::shape, cat("a tensor of shape [", join(shape, ", "), "] is too large")));
  return static_cast<std::size_t>(*bytes);
}

Tensor leaf(const CreateOptions& options, const Shape& shape, Ref<runtime::Buffer> buffer) {
  engine::Storage storage{std::move(buffer), op::contiguous({shape.begin(), shape.end()})};
  return Tensor::adopt(engine::make_leaf(engine_of(options), options.dtype, shape, std::move(storage), {}));
}

/// Numbers nobody else gets: as many counter values as there are elements.
Tensor random(const char* name, double a, double b, const Shape& shape, const CreateOptions& options) {
  const auto engine = engine_of(options);
  const auto state = engine->take_random(byte_count(shape, options.dtype) / ir::size_of(options.dtype));
  detail::CallOperands operands;
  operands.add(Operand(a)).add(Operand(b)).add(Operand(static_cast<std::int64_t>(state.seed))).add(Operand(static_cast<std::int64_t>(state.offset)));
  return detail::call(detail::card(name), operands, {{"shape", ir::shape_of(shape)}, {"dtype", options.dtype}}, engine);
}

}  // namespace

Tensor tessera::full(Shape shape, double value, CreateOptions options) {
  byte_count(shape, options.dtype);
  const auto engine = engine_of(options);
  Tensor out = detail::call(detail::card("full"), detail::CallOperands().add(Operand(value)), {{"shape", ir::shape_of(shape)}}, engine);
  return out.dtype() == options.dtype ? out : out.cast(options.dtype);
}

Tensor tessera::zeros(Shape shape, CreateOptions options) { return full(std::move(shape), 0, std::move(options)); }
Tensor tessera::ones(Shape shape, CreateOptions options) { return full(std::move(shape), 1, std::move(options)); }

Tensor tessera::arange(std::int64_t count, CreateOptions options, double start, double step) {
  byte_count({count}, options.dtype);
  Tensor out = detail::call(detail::card("arange"), detail::CallOperands().add(Operand(start)).add(Operand(step)),
                            {{"shape", ir::Shape{count}}, {"dtype", options.dtype}}, engine_of(options));
  return out;
}

Tensor tessera::eye(std::int64_t n, CreateOptions options) {
  byte_count({n, n}, options.dtype);
  return detail::call(detail::card("eye"), {}, {{"shape", ir::Shape{n, n}}, {"dtype", options.dtype}}, engine_of(options));
}

Tensor tessera::rand(Shape shape, CreateOptions options) { return random("random_uniform", 0, 1, shape, options); }
Tensor tessera::randn(Shape shape, CreateOptions options) { return random("random_normal", 0, 1, shape, options); }

Tensor tessera::from_bytes(std::span<const std::byte> bytes, Shape shape, CreateOptions options) {
  const std::size_t needed = byte_count(shape, options.dtype);
  if (bytes.size() != needed)
    throw Exception(Error(ErrorCode::shape, cat("a ", options.dtype, " tensor of shape [", join(shape, ", "), "] has ", needed, " bytes, got ", bytes.size())));
  auto buffer = value_or_throw(engine_of(options)->allocate(needed));
  if (needed > 0) std::memcpy(buffer->data(), bytes.data(), needed);
  return leaf(options, shape, std::move(buffer));
}

Tensor tessera::from_memory(void* data, Shape shape, std::function<void()> release, CreateOptions options) {
  const std::size_t bytes = byte_count(shape, options.dtype);
  if (data == nullptr && bytes > 0) throw Exception(Error(ErrorCode::invalid_argument, "from_memory: the memory is null"));
  return leaf(options, shape, runtime::Buffer::wrap(data, bytes, std::move(release)));
}

Tensor tessera::constant(double value, CreateOptions options) {
  Tensor out = full({}, value, options).eval();
  out.node()->set(engine::Node::is_constant);
  return out;
}
