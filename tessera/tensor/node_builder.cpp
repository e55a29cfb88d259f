#include "tessera/tensor/node_builder.h"

#include <algorithm>

#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::detail;
using engine::NodeRef;
using op::Value;

namespace {

/// The dtype of a call none of whose operands of type T is a node, which would say it.
std::optional<ir::Dtype> dtype_of_numbers(const op::Card& card, std::span<const Value> inputs,
                                          std::span<const engine::Operand> operands) {
  std::optional<ir::Dtype> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (card.inputs[std::min(i, card.inputs.size() - 1)].type != "T") continue;
    if (operands[i].node != nullptr) return std::nullopt;
    if (!out) out = inputs[i].dtype();
  }
  return out;
}

}  // namespace

Value NodeBuilder::add_value_of(engine::Node& node) {
  const engine::TypeNumber type = engine::number_of_type(node);
  if (type == engine::no_type_number) return add_value(node.type());
  Typed& known = typed_[type % typed_.size()];
  if (known.type == type) return add_value_like(known.value);
  known = {type, add_value(node.type())};
  return known.value;
}

Value NodeBuilder::import(NodeRef node) {
  const Value value = add_value_of(*node);
  known_.push_back({std::move(node), {}});
  return value;
}

Value NodeBuilder::import_scalar(engine::ScalarBits scalar, ir::Dtype dtype) {
  const Value value = add_value({dtype, {}});
  known_.push_back({{}, {nullptr, scalar, ir::is_float(dtype)}});
  return value;
}

NodeRef NodeBuilder::node(Value value) {
  Known& known = known_[value.id];
  if (!known.node) {
    static const op::Card& full = *op::find_card("full");
    const auto made = engine::record(full, std::span(&known.number, 1), {{"shape", op::Shape{}}}, caller_,
                                     engine_, value.dtype());
    known.node = NodeRef::adopt(value_or_throw(made)[0]);
  }
  return known.node;
}

NodeBuilder::Operands NodeBuilder::operands_of(std::span<const Value> inputs) const {
  Operands out;
  for (const Value input : inputs) out.push_back(operand(input.id));
  return out;
}

void NodeBuilder::list(std::span<const Value> inputs, Value result) {
  if (calls_ == nullptr) return;
  WrittenCall& call = calls_->emplace_back();
  for (const Value input : inputs) call.inputs.push_back(input.id);
  call.result = result.id;
}

Result<op::Values> NodeBuilder::emit(const op::Card& card, std::span<const Value> inputs,
                                     op::Attributes attributes, op::ValueTypes) {
  const Operands operands = operands_of(inputs);
  const auto nodes = TESSERA_TRY(engine::record(card, operands, std::move(attributes), caller_, engine_,
                                                dtype_of_numbers(card, inputs, operands)));
  op::Values out;
  for (engine::Node* node : nodes) out.push_back(import(NodeRef::adopt(node)));
  list(inputs, out[0]);
  return out;
}

Result<Value> NodeBuilder::emit_like(const op::Card& card, std::span<const Value> inputs, Value like) {
  engine::Node* const node = engine::record_known(card, operands_of(inputs), {}, caller_);
  if (node == nullptr) return Builder::emit_like(card, inputs, like);
  known_.push_back({NodeRef::adopt(node), {}});
  const Value out = add_value_like(like);
  list(inputs, out);
  return out;
}

Value NodeBuilder::emit_known(const op::Card& card, std::span<const Value> inputs,
                              const op::Attributes& attributes) {
  engine::Node* const node = engine::record_known(card, operands_of(inputs), attributes.entries(), caller_);
  if (node == nullptr) return {};
  const Value out = import(NodeRef::adopt(node));
  list(inputs, out);
  return out;
}

Value NodeBuilder::emit_constant(double value, ir::Dtype dtype) {
  const engine::Operand number = ir::is_float(dtype) ? engine::Operand::of(value)
                                                     : engine::Operand::of(static_cast<std::int64_t>(value));
  return import_scalar(number.scalar, dtype);
}

Value NodeBuilder::emit_extent(const op::Dim& size) {
  return import_scalar(engine::ScalarBits::of_integer(size.value()), ir::Dtype::i64);
}
