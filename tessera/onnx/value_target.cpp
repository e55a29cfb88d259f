#include "tessera/onnx/value_target.h"

#include "tessera/base/checked.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::onnx;

Value ValueTarget::add(HostTensor tensor) {
  live_bytes_ += static_cast<std::int64_t>(tensor.byte_size());
  const std::span<const std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  const Value out = add_value({tensor.dtype(), ir::shape_of(shape)});
  TESSERA_CHECK(out.id == tensors_.size(), "values are numbered by their tensors");
  tensors_.push_back(std::move(tensor));
  holders_.push_back(0);
  return out;
}

Value ValueTarget::sizes_vector(std::span<const Dim> sizes) {
  HostTensor out =
      value_or_throw(HostTensor::allocate(Dtype::i64, {static_cast<std::int64_t>(sizes.size())}));
  for (std::size_t i = 0; i < sizes.size(); ++i) out.values<std::int64_t>()[i] = sizes[i].value();
  return add(std::move(out));
}

std::optional<std::vector<Dim>> ValueTarget::sizes(Value value) {
  if (!ir::is_integer(value.dtype())) return std::nullopt;
  const auto integers = integers_of(tensors_[value.id]);
  return std::vector<Dim>(integers.begin(), integers.end());
}

void ValueTarget::forget_unheld(std::size_t id) {
  if (holders_[id] > 0) return;
  live_bytes_ -= static_cast<std::int64_t>(tensors_[id].byte_size());
  tensors_[id] = HostTensor();
}

void ValueTarget::forget_unheld(Value value) { forget_unheld(value.id); }

void ValueTarget::forget_unheld_since(std::size_t mark) {
  for (std::size_t id = mark; id < tensors_.size(); ++id) forget_unheld(id);
}

Result<void> ValueTarget::check_memory(const op::ValueTypes& types) const {
  std::int64_t total = live_bytes_;
  for (const op::ValueType& type : types) {
    const auto bytes =
        checked_mul(*ir::element_count(type.shape), static_cast<std::int64_t>(ir::size_of(type.dtype)));
    const auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
    if (!sum || *sum > budget_.limits().total_bytes)
      return Error(ErrorCode::limit, cat("more than ", budget_.limits().total_bytes,
                                         " bytes of values would be alive at once"));
    total = *sum;
  }
  return {};
}

Result<op::Values> ValueTarget::emit(const op::Card& card, std::span<const Value> inputs,
                                     op::Attributes attributes, op::ValueTypes types) {
  TESSERA_TRY(budget_.take_call(card, inputs, attributes, types));
  TESSERA_TRY(check_memory(types));
  std::vector<op::Array> arrays, result_arrays;
  op::ValueTypes input_types;
  for (Value input : inputs) {
    arrays.push_back(tensors_[input.id].array());
    input_types.push_back(input.type());
  }
  std::vector<HostTensor> results;
  for (const op::ValueType& type : types) {
    results.push_back(TESSERA_TRY(HostTensor::allocate(type.dtype, op::extents_of(type.shape))));
    result_arrays.push_back(results.back().array());
  }
  const op::CallInfo call(card, input_types, attributes);
  TESSERA_TRY(call_ ? call_(call, arrays, result_arrays) : op::run_reference(call, arrays, result_arrays));
  op::Values out;
  for (HostTensor& result : results) out.push_back(add(std::move(result)));
  return out;
}

Value ValueTarget::emit_constant(double value, Dtype dtype) {
  return add(tensor_of(dtype, {}, std::span<const double>(&value, 1)));
}

Value ValueTarget::emit_extent(const Dim& size) {
  const std::int64_t number = size.value();
  return add(tensor_of(Dtype::i64, {}, std::span<const std::int64_t>(&number, 1)));
}

std::vector<std::int64_t> tessera::onnx::integers_of(const HostTensor& tensor) {
  std::vector<op::SignedWide> wide(static_cast<std::size_t>(tensor.size()));
  op::loader<op::SignedWide>(tensor.dtype())(tensor.array().data, 0, 1, wide.size(), wide.data());
  std::vector<std::int64_t> out;
  out.reserve(wide.size());
  for (const op::SignedWide value : wide) out.push_back(value.v);
  return out;
}

std::vector<double> tessera::onnx::numbers_of(const HostTensor& tensor) {
  if (!ir::is_float(tensor.dtype())) {
    const auto integers = integers_of(tensor);
    return {integers.begin(), integers.end()};
  }
  std::vector<double> out(static_cast<std::size_t>(tensor.size()));
  op::loader<double>(tensor.dtype())(tensor.array().data, 0, 1, out.size(), out.data());
  return out;
}

HostTensor tessera::onnx::tensor_of(Dtype dtype, const op::Extents& shape, std::span<const double> numbers) {
  HostTensor out = value_or_throw(HostTensor::allocate(dtype, shape));
  op::storer<double>(dtype)(out.array().data, 0, 1, numbers.size(), numbers.data());
  return out;
}

HostTensor tessera::onnx::tensor_of(Dtype dtype, const op::Extents& shape,
                                    std::span<const std::int64_t> integers) {
  HostTensor out = value_or_throw(HostTensor::allocate(dtype, shape));
  std::vector<op::SignedWide> wide(integers.begin(), integers.end());
  op::storer<op::SignedWide>(dtype)(out.array().data, 0, 1, wide.size(), wide.data());
  return out;
}
