#include "tessera/tensor/custom.h"

#include <algorithm>
#include <array>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/device_call.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/op_name.h"
#include "tessera/tensor/running_scope.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr op::Input any_tensors[] = {{"arguments", "any", op::InputKind::variadic}};

bool has_numbers(std::span<const TensorType> types) {
  return std::all_of(types.begin(), types.end(),
                     [](const TensorType& type) { return ir::constant_shape(type.shape).has_value(); });
}

}  // namespace

/// The card and what it stands on: rules of cards are plain functions, which find the rest here.
struct Custom::Card : op::Card {
  explicit Card(CustomOptions given) : options(std::move(given)) {
    name = options.name;
    summary = "an op of the program's own";
    inputs = any_tensors;
    traits.costly = true;
    traits.random = !options.is_pure;
    infer = [](const op::CallInfo& call) { return of(call).types_of(call); };
    reference = [](const op::CallInfo& call, std::span<const op::Array> from, std::span<const op::Array> to) {
      return of(call).run(from, to);
    };
  }

  static const Card& of(const op::CallInfo& call) { return static_cast<const Card&>(call.card()); }

  [[nodiscard]] Result<op::ValueTypes> types_of(const op::CallInfo& call) const {
    if (!options.types) return op::ValueTypes{call.input(0)};
    auto types = TESSERA_TRY(op::guarded(name, [&] { return options.types(call.inputs()); }));
    if (types.empty()) return call.error("its rule for types gives no result");
    if (has_numbers(call.inputs()) && !has_numbers(types))
      return call.error("its rule for types gives symbolic sizes for arguments that have numbers");
    if (options.gradient && types.size() != 1)
      return call.error("has a gradient, so that it has one result, but its rule for types gives ",
                        types.size());
    return types;
  }

  [[nodiscard]] Result<void> run(std::span<const op::Array> from, std::span<const op::Array> to) const {
    std::vector<op::HostTensor> copies;
    SmallVector<op::Array, 4> dense(from.begin(), from.end());
    for (op::Array& array : dense) {
      if (array.layout.is_contiguous()) continue;
      copies.push_back(TESSERA_TRY(op::HostTensor::allocate(array.dtype, array.shape())));
      op::copy_elements(array, copies.back().array());
      array = copies.back().array();
    }
    SmallVector<Elements, 4> read, written;
    for (const op::Array& array : dense) read.push_back(Elements(array));
    for (const op::Array& array : to) written.push_back(Elements(array));
    const RunningScope scope;
    return op::guarded(name, [&] { options.run(read, written); });
  }

  const CustomOptions options;
};

std::span<std::byte> Elements::bytes() const {
  return {begin(), static_cast<std::size_t>(size()) * ir::size_of(dtype())};
}

void Elements::expect(Dtype asked) const {
  if (asked != dtype())
    throw Exception(
        Error(ErrorCode::invalid_argument, cat("elements of ", dtype(), " were asked for as ", asked)));
}

const std::string& Custom::name() const { return card_->options.name; }

std::vector<Tensor> Custom::record(const std::vector<Tensor>& arguments, Here here) const {
  return call_all(*card_, CallOperands().add(OperandList(arguments, here)), {});
}

std::vector<Tensor> Custom::all(const OperandList& arguments) const {
  const Here here = arguments.here();
  const std::vector<Tensor> xs(arguments.tensors().begin(), arguments.tensors().end());
  if (xs.empty()) fail(here, cat(name(), ": takes at least one argument"));
  const GradientRule& gradient = card_->options.gradient;
  if (!gradient) return record(xs, here);
  const auto value = [this, here](const std::vector<Tensor>& given) { return record(given, here)[0]; };
  return {custom_gradient(value, gradient, here)(xs)};
}

Tensor Custom::one(std::span<const Operand* const> operands) const {
  const auto is_tensor = [](const Operand* operand) { return operand->kind() == Operand::Kind::tensor; };
  const auto first = std::find_if(operands.begin(), operands.end(), is_tensor);
  const Here here = operands[0]->here();
  if (first == operands.end()) fail(here, cat(name(), ": takes at least one tensor"));
  const Tensor& like = (*first)->tensor();
  std::vector<Tensor> arguments;
  for (const Operand* operand : operands) {
    if (operand->kind() == Operand::Kind::none || (is_tensor(operand) && operand->tensor().is_empty()))
      fail(here, cat(name(), ": argument ", arguments.size(), " is empty"));
    arguments.push_back(is_tensor(operand) ? operand->tensor() : number_argument(*operand, &like));
  }
  std::vector<Tensor> results = all(OperandList(arguments, here));
  if (results.size() != 1) fail(here, cat(name(), ": has ", results.size(), " results; all() gives them"));
  return std::move(results[0]);
}

Tensor Custom::operator()(const Operand& a) const { return one(std::array{&a}); }
Tensor Custom::operator()(const Operand& a, const Operand& b) const { return one(std::array{&a, &b}); }
Tensor Custom::operator()(const Operand& a, const Operand& b, const Operand& c) const {
  return one(std::array{&a, &b, &c});
}
Tensor Custom::operator()(const Operand& a, const Operand& b, const Operand& c, const Operand& d) const {
  return one(std::array{&a, &b, &c, &d});
}

Custom tessera::custom(CustomOptions options, Here here) {
  check_op_name("custom", options.name, here);
  if (!options.run) fail(here, cat("custom: the function of '", options.name, "' is empty"));
  auto card = std::make_shared<const Custom::Card>(std::move(options));
  const Custom out(*card);
  value_at(here, op::add_card(std::move(card)));
  return out;
}
