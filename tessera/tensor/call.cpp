#include "tessera/tensor/call.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::detail;

void tessera::detail::fail(Here here, ErrorCode code, std::string message) {
  throw Exception(Error(code, std::move(message), span_of(here)));
}

engine::Node& tessera::detail::node_of(const Tensor& tensor, std::string_view use, Here here) {
  if (tensor.is_empty()) fail(here, cat(use, ": the tensor is empty"));
  return *tensor.node();
}

bool tessera::detail::have_same_shape(const Tensor& a, const Tensor& b) {
  const auto of_a = a.node()->shape(), of_b = b.node()->shape();
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

void tessera::detail::check_name(std::string_view function, const std::string& name, const Tensor& tensor,
                                 Here here) {
  const std::string shown = cat("'", printable(shortened(name, 60)), "'");
  if (!is_valid_utf8(name)) fail(here, cat(function, ": the name ", shown, " is not valid UTF-8"));
  if (tensor.is_empty()) fail(here, cat(function, ": the tensor ", shown, " is empty"));
}

void CallOperands::add(const Tensor& tensor, Here here) {
  if (tensor.is_empty() && !empty_) empty_ = {operands_.size(), here};
  operands_.push_back(engine::Operand::of(tensor.node()));
}

void CallOperands::fail_empty(const op::Card& card) const {
  fail(empty_->second, cat(card.name, ": operand ", empty_->first, " is an empty tensor"));
}

CallOperands& CallOperands::add(const Operand& operand) {
  if (caller_.file == nullptr) caller_ = caller_of(operand.here());
  if (skipped_ && operand.kind() != Operand::Kind::none)
    fail(operand.here(), "an input was given behind one that was left out");
  switch (operand.kind()) {
    case Operand::Kind::none:
      skipped_ = true;
      break;
    case Operand::Kind::tensor:
      add(operand.tensor(), operand.here());
      break;
    case Operand::Kind::real:
      operands_.push_back(engine::Operand::of(operand.real()));
      break;
    case Operand::Kind::integer:
      operands_.push_back(engine::Operand::of(operand.integer()));
      break;
  }
  return *this;
}

CallOperands& CallOperands::add(const OperandList& list) {
  if (caller_.file == nullptr) caller_ = caller_of(list.here());
  for (const Tensor& tensor : list.tensors()) add(tensor, list.here());
  return *this;
}

std::vector<Tensor> tessera::detail::call_all(const op::Card& card, const CallOperands& operands,
                                              op::Attributes attributes,
                                              const std::shared_ptr<engine::Engine>& engine) {
  operands.expect_no_empty(card);
  const auto nodes = value_or_throw(
      engine::record(card, operands.operands(), std::move(attributes), operands.caller(), engine));
  std::vector<Tensor> out;
  for (engine::Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

Tensor tessera::detail::call(const op::Card& card, const CallOperands& operands,
                             const op::Attributes& attributes, const std::shared_ptr<engine::Engine>& engine,
                             std::optional<Dtype> dtype) {
  operands.expect_no_empty(card);
  if (!dtype)
    if (engine::Node* node =
            engine::record_known(card, operands.operands(), attributes.entries(), operands.caller()))
      return Tensor::adopt(node);
  const auto nodes =
      value_or_throw(engine::record(card, operands.operands(), attributes, operands.caller(), engine, dtype));
  for (std::size_t i = 1; i < nodes.size(); ++i) (void)Tensor::adopt(nodes[i]);
  return Tensor::adopt(nodes[0]);
}

namespace {

inline engine::Operand plain(const Operand& operand) {
  if (operand.kind() == Operand::Kind::tensor) return engine::Operand::of(operand.tensor().node());
  return operand.kind() == Operand::Kind::real ? engine::Operand::of(operand.real())
                                               : engine::Operand::of(operand.integer());
}
/// Whether it may be looked up among the calls that are known: an operand that is there.
inline bool is_plain(const Operand& operand) {
  return operand.kind() != Operand::Kind::none &&
         !(operand.kind() == Operand::Kind::tensor && operand.tensor().is_empty());
}

}  // namespace

Tensor tessera::detail::unary(const op::Card& card, const Operand& x) {
  if (is_plain(x)) {
    const engine::Operand operands[] = {plain(x)};
    if (engine::Node* node = engine::record_known(card, std::span(operands), caller_of(x.here())))
      return Tensor::adopt(node);
  }
  return call(card, CallOperands().add(x));
}

Tensor tessera::detail::binary(const op::Card& card, const Operand& a, const Operand& b) {
  if (is_plain(a) && is_plain(b)) {
    const engine::Operand operands[] = {plain(a), plain(b)};
    if (engine::Node* node = engine::record_known(card, std::span(operands), caller_of(a.here())))
      return Tensor::adopt(node);
  }
  return call(card, CallOperands().add(a).add(b));
}

const op::Card& tessera::detail::card(std::string_view name) {
  const op::Card* found = op::find_card(name);
  TESSERA_CHECK(found != nullptr, cat("there is no op '", name, "'"));
  return *found;
}
