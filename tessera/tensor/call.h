// How the functions of this room record a call: operands to nodes, errors to exceptions.
#pragma once

#include <initializer_list>
#include <optional>
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
  void add(const Tensor& tensor, Here here);

  SmallVector<engine::Operand, 4> operands_;
  engine::Caller caller_;
  bool skipped_ = false;  ///< an input was left out
};

inline engine::Caller caller_of(Here here) { return {here.file, here.line}; }
inline SourceSpan span_of(Here here) { return {here.file, here.line, 0}; }

/// Records; throws Exception. `dtype` is that of the numbers where no tensor says it.
std::vector<Tensor> call_all(const op::Card& card, const CallOperands& operands, op::Attributes attributes,
                             const std::shared_ptr<engine::Engine>& engine = nullptr);
Tensor call(const op::Card& card, const CallOperands& operands, op::Attributes attributes = {},
            const std::shared_ptr<engine::Engine>& engine = nullptr, std::optional<Dtype> dtype = {});
Tensor unary(const op::Card& card, const Operand& x);
Tensor binary(const op::Card& card, const Operand& a, const Operand& b);

/// The card of an op that must exist.
const op::Card& card(std::string_view name);

}  // namespace tessera::detail
