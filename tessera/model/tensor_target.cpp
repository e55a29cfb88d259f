#include "tessera/model/tensor_target.h"

#include <algorithm>

#include "tessera/onnx/value_target.h"
#include "tessera/op/reference.h"

using namespace tessera;
using engine::NodeRef;
using op::HostTensor;
using op::Value;

namespace {

/// What is larger is computed with everything else, when it is asked for.
constexpr std::int64_t max_folded_elements = 1 << 14;

}  // namespace

Tensor tessera::tensor_of(const HostTensor& elements, const std::shared_ptr<engine::Engine>& engine) {
  const op::Array& array = elements.array();
  engine::Storage storage{{}, array.layout};
  if (engine->has_host_memory())
    storage.buffer = runtime::Buffer::wrap_constant(array.data, elements.byte_size(), [elements] {});
  else
    storage = value_or_throw(engine->copy_in(array));
  return Tensor::adopt(engine::make_leaf(engine, array.dtype, array.shape(), std::move(storage), {}));
}

HostTensor tessera::elements_of(const Tensor& tensor, Here here) {
  const auto bytes = tensor.bytes(here);  // computes, and throws if that fails
  const auto shape = tensor.node()->shape();
  return HostTensor::wrap(tensor.dtype(), op::Extents(shape.begin(), shape.end()), bytes.data(),
                          std::make_shared<Tensor>(tensor));
}

Value TensorTarget::input(const Tensor& tensor) { return import(NodeRef::share(tensor.node())); }

Tensor TensorTarget::output(Value value) { return Tensor::adopt(node(value).detach()); }

Value TensorTarget::tensor(HostTensor elements) {
  const auto at = weights_.find(elements.array().data);
  const bool is_weight = at != weights_.end() && at->second.dtype() == elements.dtype() &&
                         at->second.shape() == Shape(elements.shape().begin(), elements.shape().end());
  const Value out = input(is_weight ? at->second : tensor_of(elements, engine_));
  known_.emplace(out.id, std::move(elements));
  return out;
}

Value TensorTarget::sizes_vector(std::span<const op::Dim> sizes) {
  std::vector<std::int64_t> numbers;
  for (const op::Dim& size : sizes) numbers.push_back(size.value());
  return tensor(onnx::tensor_of(Dtype::i64, {static_cast<std::int64_t>(sizes.size())},
                                std::span<const std::int64_t>(numbers)));
}

std::optional<HostTensor> TensorTarget::elements(Value value) {
  if (const auto at = known_.find(value.id); at != known_.end()) return at->second;
  return known_.emplace(value.id, elements_of(output(value))).first->second;
}

std::optional<std::vector<op::Dim>> TensorTarget::sizes(Value value) {
  if (!ir::is_integer(value.dtype())) return std::nullopt;
  const auto integers = onnx::integers_of(*elements(value));
  return std::vector<op::Dim>(integers.begin(), integers.end());
}

// ---- what is needed

void TensorTarget::hold(Value value) {
  if (holders_.size() <= value.id) holders_.resize(value_count(), 0);
  ++holders_[value.id];
}

void TensorTarget::forget_unheld(std::uint32_t id) {
  if (id < holders_.size() && holders_[id] > 0) return;
  forget({this, id});
  known_.erase(id);
}

void TensorTarget::forget_unheld(Value value) { forget_unheld(value.id); }

void TensorTarget::forget_unheld_since(std::size_t mark) {
  for (std::size_t id = mark; id < value_count(); ++id) forget_unheld(static_cast<std::uint32_t>(id));
}

// ---- calls

std::optional<std::vector<HostTensor>> TensorTarget::folded(const op::Card& card,
                                                            std::span<const Value> inputs,
                                                            const op::Attributes& attributes,
                                                            const op::ValueTypes& types) const {
  const bool are_small = std::all_of(types.begin(), types.end(), [](const op::ValueType& type) {
    return ir::element_count(type.shape).value_or(max_folded_elements + 1) <= max_folded_elements;
  });
  if (card.traits.random || !are_small) return std::nullopt;
  std::vector<op::Array> arrays;
  for (Value input : inputs) {
    const auto at = known_.find(input.id);
    if (at == known_.end() || at->second.size() > max_folded_elements) return std::nullopt;
    arrays.push_back(at->second.array());
  }
  auto results = op::run_reference(card, arrays, attributes);
  if (!results) return std::nullopt;  // what is wrong with it shows when it is evaluated
  return *std::move(results);
}

Result<op::Values> TensorTarget::emit(const op::Card& card, std::span<const Value> inputs,
                                      op::Attributes attributes, op::ValueTypes types) {
  TESSERA_TRY(budget_.take_call(card, inputs, attributes, types));
  auto known = folded(card, inputs, attributes, types);
  if (!known) return NodeBuilder::emit(card, inputs, std::move(attributes), std::move(types));
  op::Values out;
  for (HostTensor& result : *known) out.push_back(tensor(std::move(result)));
  return out;
}

Value TensorTarget::emit_constant(double value, Dtype dtype) {
  const Value out = NodeBuilder::emit_constant(value, dtype);
  known_.emplace(out.id, onnx::tensor_of(dtype, {}, std::span<const double>(&value, 1)));
  return out;
}

Value TensorTarget::emit_extent(const op::Dim& size) {
  const Value out = NodeBuilder::emit_extent(size);
  const std::int64_t number = size.value();
  known_.emplace(out.id, onnx::tensor_of(Dtype::i64, {}, std::span<const std::int64_t>(&number, 1)));
  return out;
}
