#include "tessera/kernel/gelu.h"

#include <bit>

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// The operation of f32 that a value is; null if it is another.
const Instruction* operation_at(const Kernel& kernel, ValueId value, ScalarOpcode opcode) {
  const Instruction& instruction = kernel.body[value];
  const bool is_it = instruction.kind == InstructionKind::operation && instruction.opcode == opcode;
  return is_it && wide_dtype(instruction.dtype) == Dtype::f32 ? &instruction : nullptr;
}

bool is_number(const Kernel& kernel, ValueId value, float number) {
  const Instruction& instruction = kernel.body[value];
  return instruction.kind == InstructionKind::constant &&
         static_cast<float>(std::bit_cast<double>(instruction.bits)) == number;
}

}  // namespace

std::optional<ValueId> tessera::kernel::gelu_operand(const Kernel& kernel, const Instruction& value) {
  if (value.kind != InstructionKind::operation || value.opcode != ScalarOpcode::mul ||
      wide_dtype(value.dtype) != Dtype::f32)
    return std::nullopt;
  const Instruction* half = operation_at(kernel, value.operands[0], ScalarOpcode::mul);
  const Instruction* sum = operation_at(kernel, value.operands[1], ScalarOpcode::add);
  if (half == nullptr || sum == nullptr || !is_number(kernel, half->operands[0], 0.5f) ||
      !is_number(kernel, sum->operands[0], 1.0f))
    return std::nullopt;
  const Instruction* erf = operation_at(kernel, sum->operands[1], ScalarOpcode::erf);
  const Instruction* scaled =
      erf == nullptr ? nullptr : operation_at(kernel, erf->operands[0], ScalarOpcode::mul);
  const ValueId x = half->operands[1];
  const bool matches = scaled != nullptr && scaled->operands[0] == x &&
                       is_number(kernel, scaled->operands[1], 0.707106781186547524f);
  return matches ? std::optional(x) : std::nullopt;
}
