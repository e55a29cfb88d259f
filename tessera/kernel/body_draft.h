// The body of a kernel while it is written: equal instructions are one, formulas are taken apart.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/expr.h"
#include "tessera/kernel/kernel.h"

namespace tessera::kernel {

class BodyDraft {
 public:
  /// The instruction, or an equal one that is there already.
  ValueId add(const Instruction& instruction);
  ValueId load(std::uint32_t operand, Dtype dtype);
  /// An axis of the draft (region_builder.h), not yet of the kernel.
  ValueId extent(std::uint32_t axis);
  ValueId place(std::uint32_t axis);
  ValueId parameter(std::uint32_t slot, Dtype dtype);
  /// The value as another dtype, itself if it is one.
  ValueId cast(ValueId value, Dtype to);
  /// An operation in the wide type of its operands. Fails if their wide types differ.
  [[nodiscard]] Result<ValueId> operation(ScalarOpcode opcode, std::span<const ValueId> operands,
                                          Dtype dtype);
  /// `axes` says which axes those are, by the caller's count.
  ValueId reduction(ScalarOpcode opcode, ValueId of, std::uint32_t axes, Dtype dtype, bool needs_elements);

  /// The value of a variable or another leaf of an expression.
  using Leaf = std::function<std::optional<ValueId>(const ir::Expr&)>;
  /// A scalar expression as instructions; constants and parameters are known.
  [[nodiscard]] Result<ValueId> expression(const ir::Expr& root, const Leaf& leaf);

  [[nodiscard]] Dtype dtype(ValueId value) const { return body_[value].dtype; }
  [[nodiscard]] const std::vector<Instruction>& body() const { return body_; }
  [[nodiscard]] const std::vector<Dtype>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<std::uint32_t>& slots() const { return slots_; }

 private:
  struct HashInstruction {
    std::size_t operator()(const Instruction& instruction) const;
  };

  std::optional<ValueId> constant(const ir::Expr& expr);
  Result<ValueId> operation_of(const ir::ScalarOp& op, std::span<const ValueId> operands);

  std::vector<Instruction> body_;
  std::unordered_map<Instruction, ValueId, HashInstruction> known_;
  std::vector<Dtype> parameters_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace tessera::kernel
