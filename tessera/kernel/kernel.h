// A kernel: a fused region as data.
//
// It runs over an iteration space: outer axes, whose points are independent of each other, and reduced axes.
// Operands are arrays that are read or written at affine maps of the point. The body is a list of scalar
// instructions in single assignment, from the cards' own formulas; reductions are instructions over all
// points of the reduced axes, so that a softmax or a layer norm is one kernel with several passes (passes.h).
//
// Sizes are not part of it: they come from the arrays at each run. Values of scalar parameters are not
// either.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/base/reflect.h"
#include "tessera/ir/dtype.h"
#include "tessera/ir/scalar_opcode.h"

namespace tessera::kernel {

using ir::Dtype;
using ir::ScalarOpcode;

/// What values of a dtype are computed in: f32 for the 16-bit floats, 64 bits for integers. An instruction of
/// dtype i8 holds an i64 within the range of i8.
[[nodiscard]] constexpr Dtype wide_dtype(Dtype dtype) {
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) return Dtype::f32;
  return ir::is_integer(dtype) && dtype != Dtype::u64 ? Dtype::i64 : dtype;
}

/// How near functions of f32 come to what they should be (docs/kernel.md).
enum class Accuracy : std::uint8_t {
  usual,
  precise,  ///< within two units of the last place
};

/// The number of an instruction in the body.
using ValueId = std::uint32_t;
inline constexpr ValueId no_value = ~ValueId{0};

enum class InstructionKind : std::uint8_t {
  load,       ///< an element of operand `index`
  parameter,  ///< scalar parameter `index`
  constant,   ///< `bits`: of a double, of an integer, or 0 and 1
  place,      ///< the index of the point along axis `index`, i64
  extent,     ///< the size of axis `index`, i64
  operation,  ///< `opcode` of the operands; a cast is to `dtype`
  /// `opcode` over all values that operand 0 has along the reduced axes. `bits` 1: there must be one.
  reduction,
};

struct Instruction {
  InstructionKind kind = InstructionKind::constant;
  ScalarOpcode opcode = ScalarOpcode::add;
  Dtype dtype = Dtype::f32;
  std::uint32_t index = 0;
  std::array<ValueId, 3> operands{no_value, no_value, no_value};
  std::uint64_t bits = 0;

  bool operator==(const Instruction&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("kind", &Instruction::kind),         usual("opcode", &Instruction::opcode),
                      usual("dtype", &Instruction::dtype),       usual("index", &Instruction::index),
                      usual("operands", &Instruction::operands), usual("bits", &Instruction::bits)};
  }
};

/// The operands that are there.
[[nodiscard]] inline std::size_t operand_count(const Instruction& instruction) {
  if (instruction.kind == InstructionKind::reduction) return 1;
  return instruction.kind == InstructionKind::operation ? ir::info(instruction.opcode).arity : 0;
}

/// One axis of an array: which index the point has there, without the terms.
struct Start {
  std::int64_t value = 0;
  bool from_end = false;  ///< the size of the axis minus `value`
  bool whole = true;      ///< the one term walks over all of the axis; without terms, its size is 1

  bool operator==(const Start&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("value", &Start::value), usual("from_end", &Start::from_end),
                      usual("whole", &Start::whole)};
  }
};
/// `step` times the point's index along `axis` is added to the index along `array_axis`.
struct Term {
  std::uint32_t axis = 0;
  std::uint32_t array_axis = 0;
  std::int64_t step = 1;

  bool operator==(const Term&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("axis", &Term::axis), usual("array_axis", &Term::array_axis),
                      usual("step", &Term::step)};
  }
};

struct Operand {
  Dtype dtype = Dtype::f32;
  std::uint32_t argument = 0;  ///< which array: inputs first, then outputs
  std::vector<Start> starts;   ///< one per axis of the array
  std::vector<Term> terms;
  /// The array is first seen with this shape (one size may be -1); empty: as it is.
  std::vector<std::int64_t> seen_as;
  bool is_reshaped = false;

  bool operator==(const Operand&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("dtype", &Operand::dtype),     usual("argument", &Operand::argument),
                      usual("starts", &Operand::starts),   usual("terms", &Operand::terms),
                      usual("seen_as", &Operand::seen_as), usual("is_reshaped", &Operand::is_reshaped)};
  }
};

struct Store {
  std::uint32_t operand = 0;
  ValueId value = no_value;

  bool operator==(const Store&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("operand", &Store::operand), usual("value", &Store::value)};
  }
};

/// Immutable once built. Compared by content.
struct Kernel {
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
  std::uint32_t outer_axes = 0;           ///< the first ones
  std::vector<std::int64_t> fixed_sizes;  ///< one per axis: of those that no array has; else -1
  std::vector<Operand> operands;
  std::vector<Instruction> body;  ///< operands before their users
  std::vector<Store> stores;
  std::vector<Dtype> parameters;
  std::uint32_t placed_axes = 0;  ///< a bit per axis that a `place` names; follows from the body
  /// Which scalar parameter of the function each is: for the caller, not part of the identity.
  std::vector<std::uint32_t> slots;

  static constexpr auto fields() {
    return std::tuple{
        usual("input_count", &Kernel::input_count), usual("output_count", &Kernel::output_count),
        usual("outer_axes", &Kernel::outer_axes),   usual("fixed_sizes", &Kernel::fixed_sizes),
        usual("operands", &Kernel::operands),       usual("body", &Kernel::body),
        usual("stores", &Kernel::stores),           usual("parameters", &Kernel::parameters),
        usual("placed_axes", &Kernel::placed_axes), ignore("slots", &Kernel::slots)};
  }
  [[nodiscard]] std::size_t axis_count() const { return fixed_sizes.size(); }
  [[nodiscard]] bool reduces() const { return outer_axes < axis_count(); }
};

/// The bits of the constant that leaves every other value of a reduction as it is.
[[nodiscard]] std::uint64_t neutral_bits(ScalarOpcode opcode, Dtype wide);

/// Everything that makes the kernel what it is, as bytes: equal kernels have equal bytes, others do not. The
/// same on every machine.
[[nodiscard]] std::string encoded(const Kernel& kernel);

/// Whether one compiled kernel serves both. The hash finds, this decides.
[[nodiscard]] bool equal(const Kernel& a, const Kernel& b);
[[nodiscard]] Hash128 hash(const Kernel& kernel);

/// For people; every bit of a constant is shown.
[[nodiscard]] std::string to_text(const Kernel& kernel);

}  // namespace tessera::kernel
