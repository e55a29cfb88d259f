#include "tessera/kernel/kernel.h"

#include <bit>
#include <limits>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// Words, lists with their lengths in front.
class Encoder {
 public:
  Encoder& add(std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(word >> shift & 0xff);
    return *this;
  }
  Encoder& add(const Operand& operand) {
    add(static_cast<std::uint64_t>(operand.dtype)).add(operand.argument).add(operand.starts.size());
    for (const Start& start : operand.starts)
      add(static_cast<std::uint64_t>(start.value)).add((start.from_end ? 1 : 0) + (start.whole ? 2 : 0));
    add(operand.terms.size());
    for (const Term& term : operand.terms)
      add(term.axis).add(term.array_axis).add(static_cast<std::uint64_t>(term.step));
    add(operand.is_reshaped ? 1 : 0).add(operand.seen_as.size());
    for (std::int64_t size : operand.seen_as) add(static_cast<std::uint64_t>(size));
    return *this;
  }
  Encoder& add(const Instruction& instruction) {
    add(static_cast<std::uint64_t>(instruction.kind) << 16 |
        static_cast<std::uint64_t>(instruction.opcode) << 8 | static_cast<std::uint64_t>(instruction.dtype));
    add(instruction.index).add(instruction.bits);
    for (ValueId operand : instruction.operands) add(operand);
    return *this;
  }

  std::string finish() { return std::move(out_); }

 private:
  std::string out_;
};

std::string constant_text(const Instruction& instruction) {
  if (ir::is_float(instruction.dtype)) {
    const double value = std::bit_cast<double>(instruction.bits);
    return value == value ? cat(value) : cat("nan(", instruction.bits, ")");
  }
  if (instruction.dtype == Dtype::boolean) return instruction.bits != 0 ? "true" : "false";
  if (instruction.dtype == Dtype::u64) return cat(instruction.bits);
  return cat(static_cast<std::int64_t>(instruction.bits));
}

std::string instruction_text(const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::load:
      return cat("load a", instruction.index);
    case InstructionKind::parameter:
      return cat("parameter ", instruction.index);
    case InstructionKind::constant:
      return constant_text(instruction);
    case InstructionKind::place:
      return cat("place i", instruction.index);
    case InstructionKind::extent:
      return cat("extent i", instruction.index);
    default:
      break;
  }
  std::string out = instruction.kind == InstructionKind::reduction ? "reduce " : "";
  out += ir::to_string(instruction.opcode);
  for (std::size_t i = 0; i < operand_count(instruction); ++i) out += cat(" v", instruction.operands[i]);
  return out;
}

/// "in0[i0, 2*i1 + 3]"
std::string map_text(const Kernel& kernel, const Operand& operand) {
  const bool is_input = operand.argument < kernel.input_count;
  std::string out =
      cat(is_input ? "in" : "out", is_input ? operand.argument : operand.argument - kernel.input_count);
  if (operand.is_reshaped) out += cat(" as (", join(operand.seen_as, ", "), ")");
  std::vector<std::string> indices;
  for (std::size_t axis = 0; axis < operand.starts.size(); ++axis) {
    const Start& start = operand.starts[axis];
    std::string index;
    for (const Term& term : operand.terms)
      if (term.array_axis == axis)
        index += cat(index.empty() ? "" : " + ", term.step == 1 ? "" : cat(term.step, "*"), "i", term.axis);
    if (start.from_end) index += cat(index.empty() ? "" : " + ", "end - ", start.value);
    if (!start.from_end && (start.value != 0 || index.empty()))
      index += cat(index.empty() ? "" : " + ", start.value);
    indices.push_back(std::move(index));
  }
  return cat(out, "[", join(indices, ", "), "]");
}

}  // namespace

bool tessera::kernel::equal(const Kernel& a, const Kernel& b) {
  return a.input_count == b.input_count && a.output_count == b.output_count && a.outer_axes == b.outer_axes &&
         a.fixed_sizes == b.fixed_sizes && a.operands == b.operands && a.body == b.body &&
         a.stores == b.stores && a.parameters == b.parameters;
}

std::uint64_t tessera::kernel::neutral_bits(ScalarOpcode opcode, Dtype wide) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto number = [wide](double real, std::int64_t integer) {
    if (ir::is_float(wide)) return std::bit_cast<std::uint64_t>(real);
    return static_cast<std::uint64_t>(wide == Dtype::boolean && integer != 0 ? 1 : integer);
  };
  const bool is_signed = wide == Dtype::i64;
  switch (opcode) {
    case ScalarOpcode::mul:
      return number(1, 1);
    case ScalarOpcode::min:
      return number(infinity, is_signed ? std::numeric_limits<std::int64_t>::max() : -1);
    case ScalarOpcode::max:
      return number(-infinity, is_signed ? std::numeric_limits<std::int64_t>::min() : 0);
    case ScalarOpcode::bit_and:
      return number(0, -1);
    default:
      return number(0, 0);
  }
}

std::string tessera::kernel::encoded(const Kernel& kernel) {
  Encoder out;
  out.add(kernel.input_count).add(kernel.output_count).add(kernel.outer_axes).add(kernel.fixed_sizes.size());
  for (std::int64_t size : kernel.fixed_sizes) out.add(static_cast<std::uint64_t>(size));
  out.add(kernel.operands.size());
  for (const Operand& operand : kernel.operands) out.add(operand);
  out.add(kernel.body.size());
  for (const Instruction& instruction : kernel.body) out.add(instruction);
  out.add(kernel.stores.size());
  for (const Store& store : kernel.stores) out.add(store.operand).add(store.value);
  out.add(kernel.parameters.size());
  for (Dtype dtype : kernel.parameters) out.add(static_cast<std::uint64_t>(dtype));
  return out.finish();
}

Hash128 tessera::kernel::hash(const Kernel& kernel) { return hash_text(encoded(kernel)); }

std::string tessera::kernel::to_text(const Kernel& kernel) {
  std::string out = "kernel over (";
  for (std::size_t i = 0; i < kernel.axis_count(); ++i) {
    out += cat(i == 0 ? "" : ", ", i == kernel.outer_axes ? "reduced " : "", "i", i);
    if (kernel.fixed_sizes[i] >= 0) out += cat(" < ", kernel.fixed_sizes[i]);
  }
  out += ")\n";
  for (std::size_t i = 0; i < kernel.operands.size(); ++i)
    out += cat("  a", i, ": ", ir::to_string(kernel.operands[i].dtype), " = ",
               map_text(kernel, kernel.operands[i]), "\n");
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    out += cat("  v", i, ": ", ir::to_string(kernel.body[i].dtype), " = ", instruction_text(kernel.body[i]),
               "\n");
  for (const Store& store : kernel.stores) out += cat("  store a", store.operand, " v", store.value, "\n");
  return out;
}
