// How the functions of this room record a call: operands to nodes, errors to exceptions.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "tessera/engine/record.h"
#include "tessera/tensor/tensor.h"

namespace tessera::detail {

/// The operands of a call, in the order of the card, and where the caller stands.
class CallOperands {
 public:
  CallOperands& add(const Operand& operand);
  CallOperands& add(const OperandList& list);
  [[nodiscard]] std::span<const engine::Operand> operands() const { return operands_; }
  [[nodiscard]] engine::Caller caller() const { return caller_; }

 private:
  void add(const Tensor& tensor, const char* file, int line);

  std::vector<engine::Operand> operands_;
  std::vector<Tensor> resolved_;  ///< tensors whose size had to be learned first
  engine::Caller caller_;
};

/// Records; throws Exception.
std::vector<Tensor> call_all(const op::Card& card, const CallOperands& operands, op::Attributes attributes,
                             const std::shared_ptr<engine::Engine>& engine = nullptr);
Tensor call(const op::Card& card, const CallOperands& operands, op::Attributes attributes = {},
            const std::shared_ptr<engine::Engine>& engine = nullptr);
Tensor unary(const op::Card& card, const Operand& x);
Tensor binary(const op::Card& card, const Operand& a, const Operand& b);

/// The card of an op that must exist.
const op::Card& card(std::string_view name);

/// The tensor with the size it really has, where that depends on data.
Tensor resolved(const Tensor& tensor);

}  // namespace tessera::detail
