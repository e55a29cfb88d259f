#include "tessera/compile/constants.h"

#include <bit>

#include "tessera/base/memory_layout.h"
#include "tessera/ir/dim.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

bool same_number(const op::ScalarValue& value, double number) {
  if (ir::is_float(value.dtype))
    return std::bit_cast<std::uint64_t>(value.number) == std::bit_cast<std::uint64_t>(number);
  // The integers that rules ask about fit every dtype; -0 is no integer.
  return !(number == 0 && std::signbit(number)) && value.integer == static_cast<std::int64_t>(number);
}

/// The constant's own memory, if that is aligned as an array must be.
op::HostTensor tensor_of(const ir::Dense& dense) {
  const op::Dtype dtype = dense.type->dtype;
  const auto sizes = *ir::constant_shape(dense.type->shape);
  const op::Extents shape(sizes.begin(), sizes.end());
  if (reinterpret_cast<std::uintptr_t>(dense.data.data()) % memory_alignment == 0)
    return op::HostTensor::wrap(dtype, shape, dense.data.data(), std::make_shared<const Bytes>(dense.data));
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, shape));
  std::copy(dense.data.span().begin(), dense.data.span().end(), out.array().data);
  return out;
}

}  // namespace

std::optional<op::ScalarValue> tessera::compiler::constant_scalar(const ir::Expr& operand) {
  if (ir::is<ir::Dense>(operand)) return std::nullopt;
  return op::evaluate_scalar(operand,
                             [](const ir::Expr&) -> std::optional<op::ScalarValue> { return std::nullopt; });
}

std::optional<op::HostTensor> tessera::compiler::constant_tensor(const ir::Expr& operand) {
  if (const auto* dense = ir::as<ir::Dense>(operand)) return tensor_of(*dense);
  const auto value = constant_scalar(operand);
  if (!value) return std::nullopt;
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(value->dtype, {}));
  if (ir::is_float(value->dtype)) {
    op::storer<double>(value->dtype)(out.array().data, 0, 1, 1, &value->number);
  } else {
    const op::SignedWide integer = value->integer;
    op::storer<op::SignedWide>(value->dtype)(out.array().data, 0, 1, 1, &integer);
  }
  return out;
}

op::ScalarValue tessera::compiler::constant_element(const ir::Dense& dense, std::int64_t i) {
  op::ScalarValue out{dense.type->dtype, 0, 0};
  if (ir::is_float(out.dtype)) {
    op::loader<double>(out.dtype)(dense.data.data(), i, 1, 1, &out.number);
  } else {
    op::SignedWide integer;
    op::loader<op::SignedWide>(out.dtype)(dense.data.data(), i, 1, 1, &integer);
    out.integer = integer.v;
  }
  return out;
}

bool tessera::compiler::is_everywhere(const ir::Expr& operand, double number) {
  const auto* dense = ir::as<ir::Dense>(operand);
  if (dense == nullptr) {
    const auto value = is_constant(operand) ? constant_scalar(operand) : std::nullopt;
    return value && same_number(*value, number);
  }
  const auto count = ir::element_count(dense->type->shape).value_or(0);
  for (std::int64_t i = 0; i < count; ++i)
    if (!same_number(constant_element(*dense, i), number)) return false;
  return count > 0;
}

ir::ExprRef tessera::compiler::constant_operand(const op::ScalarValue& value) {
  if (ir::is_float(value.dtype)) return ir::float_const(value.number, value.dtype);
  if (value.dtype == ir::Dtype::boolean) return ir::bool_const(value.integer != 0);
  return ir::int_const(value.integer, value.dtype);
}

Ref<ir::Dense> tessera::compiler::dense_constant(const op::HostTensor& tensor) {
  const auto held = std::make_shared<const op::HostTensor>(tensor);
  const std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  return ir::dense(ir::tensor_type(tensor.dtype(), ir::shape_of(shape)),
                   Bytes({tensor.array().data, tensor.byte_size()}, held));
}
