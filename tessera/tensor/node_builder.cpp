#include "tessera/tensor/node_builder.h"

#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::detail;
using engine::NodeRef;
using op::Value;

Value NodeBuilder::import(NodeRef node) {
  const Value value = add_value(node->type());
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
    known.node->handles.store(0, std::memory_order_relaxed);
  }
  return known.node;
}

Result<op::Values> NodeBuilder::emit(const op::Card& card, std::span<const Value> inputs,
                                     op::Attributes attributes, op::ValueTypes) {
  std::vector<engine::Operand> operands;
  std::optional<ir::Dtype> dtype;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Known& known = known_[inputs[i].id];
    operands.push_back(known.node ? engine::Operand::of(known.node.get()) : known.number);
    if (card.inputs[std::min(i, card.inputs.size() - 1)].type == "T" && !dtype) dtype = inputs[i].dtype();
  }
  const auto nodes =
      TESSERA_TRY(engine::record(card, operands, std::move(attributes), caller_, engine_, dtype));
  op::Values out;
  for (engine::Node* node : nodes) {
    node->handles.store(0, std::memory_order_relaxed);  // no handle of the user
    out.push_back(import(NodeRef::adopt(node)));
  }
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
