#include "tessera/tensor/call.h"

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::detail;

void CallOperands::add(const Tensor& tensor, const char* file, int line) {
  if (tensor.is_empty())
    throw Exception(Error(ErrorCode::invalid_argument, "an empty tensor was given to an op", {file, static_cast<std::uint32_t>(line), 0}));
  engine::Node* node = tensor.node();
  if (node->extra != nullptr && node->extra->count != nullptr) {
    resolved_.push_back(resolved(tensor));
    node = resolved_.back().node();
  }
  operands_.push_back(engine::Operand::of(node));
}

CallOperands& CallOperands::add(const Operand& operand) {
  if (caller_.file == nullptr) caller_ = {operand.file(), static_cast<std::uint32_t>(operand.line())};
  switch (operand.kind()) {
    case Operand::Kind::none: break;
    case Operand::Kind::tensor: add(operand.tensor(), operand.file(), operand.line()); break;
    case Operand::Kind::real: operands_.push_back(engine::Operand::of(operand.real())); break;
    case Operand::Kind::integer: operands_.push_back(engine::Operand::of(operand.integer())); break;
  }
  return *this;
}

CallOperands& CallOperands::add(const OperandList& list) {
  if (caller_.file == nullptr) caller_ = {list.file(), static_cast<std::uint32_t>(list.line())};
  for (const Tensor& tensor : list.tensors()) add(tensor, list.file(), list.line());
  return *this;
}

std::vector<Tensor> tessera::detail::call_all(const op::Card& card, const CallOperands& operands, op::Attributes attributes,
                                              const std::shared_ptr<engine::Engine>& engine) {
  const auto nodes = value_or_throw(engine::record(card, operands.operands(), std::move(attributes), operands.caller(), engine));
  std::vector<Tensor> out;
  for (engine::Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

Tensor tessera::detail::call(const op::Card& card, const CallOperands& operands, op::Attributes attributes,
                             const std::shared_ptr<engine::Engine>& engine) {
  const auto nodes = value_or_throw(engine::record(card, operands.operands(), std::move(attributes), operands.caller(), engine));
  for (std::size_t i = 1; i < nodes.size(); ++i) (void)Tensor::adopt(nodes[i]);
  return Tensor::adopt(nodes[0]);
}

Tensor tessera::detail::unary(const op::Card& card, const Operand& x) { return call(card, CallOperands().add(x)); }

Tensor tessera::detail::binary(const op::Card& card, const Operand& a, const Operand& b) {
  if (a.kind() == Operand::Kind::tensor && b.kind() == Operand::Kind::tensor && !a.tensor().is_empty() && !b.tensor().is_empty()) {
    engine::Node *x = a.tensor().node(), *y = b.tensor().node();
    if (x->extra == nullptr && y->extra == nullptr)
      if (engine::Node* node = engine::record_simple(card, x, y, {a.file(), static_cast<std::uint32_t>(a.line())})) return Tensor::adopt(node);
  }
  return call(card, CallOperands().add(a).add(b));
}

const op::Card& tessera::detail::card(std::string_view name) {
  const op::Card* found = op::find_card(name);
  TESSERA_CHECK(found != nullptr, cat("there is no op '", name, "'"));
  return *found;
}

Tensor tessera::detail::resolved(const Tensor& tensor) {
  engine::Node* node = tensor.node();
  if (node->extra == nullptr || node->extra->count == nullptr) return tensor;
  engine::retain(node->extra->count);
  node->extra->count->handles.fetch_add(1, std::memory_order_relaxed);
  const Tensor count = Tensor::adopt(node->extra->count);
  std::vector<Slice> slices{{0, count.item<std::int64_t>(), 1}};
  // A second handle to the same elements, without the count.
  return Tensor(tensor).slice(std::move(slices));
}
