#include "tessera/runtime/cpu/call_parts.h"

#include <algorithm>

#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/reference.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;
using op::Dtype;
using op::HostTensor;

namespace {

/// What is computed in f32 or i32: floats of 16 bits lose nothing by it, integers wrap in any case.
Dtype computed_in(Dtype dtype) {
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) return Dtype::f32;
  return ir::is_integer(dtype) && ir::size_of(dtype) <= 4 ? Dtype::i32 : dtype;
}

/// A matrix for an operand of rank 1: one row on the left, one column on the right.
op::Value as_matrix(op::Value x, bool is_left) {
  if (x.rank() != 1) return x;
  const op::Dim size = x.shape()[0];
  return op::reshape(x, is_left ? op::Shape{1, size} : op::Shape{size, 1});
}

op::Value as_dtype(op::Value x, Dtype dtype) { return x.dtype() == dtype ? x : op::cast(x, dtype); }

/// A product of another dtype or of matrices; none if it is that of `call`.
op::Values parts_of_matmul(const op::CallInfo& call, std::span<const op::Value> inputs,
                           const op::Shape& result) {
  const Dtype dtype = call.input(0).dtype, computed = computed_in(dtype);
  if (computed == dtype && call.input(0).rank() > 1 && call.input(1).rank() > 1) return {};
  const op::Value a = as_dtype(as_matrix(inputs[0], true), computed),
                  b = as_dtype(as_matrix(inputs[1], false), computed);
  return {as_dtype(op::reshape(op::matmul(a, b), result), dtype)};
}

/// What the card says, with floats of 16 bits as f32, which the reference does not round between parts
/// either. The call itself on f32 if it has no parts. None if that is `call`.
op::Values parts_of_costly(op::Builder& builder, const op::CallInfo& call,
                           std::span<const op::Value> inputs) {
  const auto widened = [](Dtype dtype) { return ir::is_float(dtype) ? computed_in(dtype) : dtype; };
  op::Values wide;
  op::ValueTypes types;
  bool is_other = false;
  for (const op::Value input : inputs) {
    wide.push_back(as_dtype(input, widened(input.dtype())));
    types.push_back({widened(input.dtype()), input.shape()});
    is_other = is_other || types.back().dtype != input.dtype();
  }
  const op::Card& card = call.card();
  if (card.decompose != nullptr)
    return card.decompose(builder, op::CallInfo(card, types, call.attributes()), wide);
  return is_other ? builder.call_all(card.name, wide, call.attributes()) : op::Values();
}

/// Nothing if the call has no parts.
Result<ir::FunctionRef> function_of_parts(const op::CallInfo& call, std::span<const op::Array> results) {
  op::IrBuilder builder(op::EqualCalls::merge);
  std::vector<op::Value> inputs;
  for (const op::ValueType& type : call.inputs()) inputs.push_back(builder.parameter("x", type));
  const auto shape_of = [&](std::size_t i) {
    return ir::shape_of(std::span<const std::int64_t>(results[i].shape()));
  };
  op::Values parts;
  if (call.card().name == "matmul")
    parts = parts_of_matmul(call, inputs, shape_of(0));
  else if (call.card().traits.costly)  // others are as fast by the reference as by many calls
    parts = parts_of_costly(builder, call, inputs);
  if (parts.size() != results.size() || !builder.status()) return ir::FunctionRef();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i] || parts[i].shape() != shape_of(i)) return ir::FunctionRef();
    parts[i] = as_dtype(parts[i], results[i].dtype);
  }
  return builder.function("parts", parts);
}

/// The array itself where it can be seen as a tensor, which nobody writes to; else a copy.
Result<HostTensor> tensor_of(const op::Array& array) {
  if (array.layout.is_contiguous())
    return HostTensor::wrap(array.dtype, array.shape(), array.at(array.layout.offset), nullptr);
  HostTensor out = TESSERA_TRY(HostTensor::allocate(array.dtype, array.shape()));
  op::copy_elements(array, out.array());
  return out;
}

Result<std::vector<HostTensor>> run_part(const op::Card& card, std::span<const op::Array> inputs,
                                         const op::Attributes& attributes, SingleCallContext context) {
  op::ValueTypes types;
  for (const op::Array& input : inputs)
    types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
  const op::ValueTypes inferred = TESSERA_TRY(op::infer(card, types, attributes));
  std::vector<HostTensor> out;
  std::vector<op::Array> results;
  for (const op::ValueType& type : inferred) {
    out.push_back(TESSERA_TRY(HostTensor::allocate(type.dtype, *ir::constant_shape(type.shape))));
    results.push_back(out.back().array());
  }
  const op::CallInfo call(card, types, attributes);
  if (!TESSERA_TRY(run_single_call(call, inputs, results, context)))
    TESSERA_TRY(op::run_reference(call, inputs, results));
  return out;
}

}  // namespace

Result<bool> runtime::cpu::run_by_parts(const op::CallInfo& call, std::span<const op::Array> inputs,
                                        std::span<const op::Array> results, SingleCallContext context) {
  const ir::FunctionRef parts = TESSERA_TRY(function_of_parts(call, results));
  if (parts == nullptr) return false;
  std::vector<HostTensor> tensors;
  for (const op::Array& input : inputs) tensors.push_back(TESSERA_TRY(tensor_of(input)));
  op::InterpreterOptions options;
  options.run_call = [&](const op::Card& card, std::span<const op::Array> arrays,
                         const op::Attributes& attributes) {
    return run_part(card, arrays, attributes, context);
  };
  const auto values = TESSERA_TRY(op::interpret(*parts, tensors, options));
  for (std::size_t i = 0; i < results.size(); ++i) op::copy_elements(values[i].array(), results[i]);
  return true;
}
