// The loops of the interpreter: one per operation and wide type, over a block of elements in contiguous
// memory. Compiled for several instruction sets; the best that the processor has is chosen once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tessera/ir/scalar_opcode.h"

namespace tessera::kernel {

inline constexpr std::size_t wide_count = 5;
inline constexpr std::size_t dtype_count = 13;

/// f32, f64, i64, u64, boolean, which is one byte, 0 or 1.
[[nodiscard]] constexpr std::size_t wide_index(ir::Dtype wide) {
  switch (wide) {
    case ir::Dtype::f64:
      return 1;
    case ir::Dtype::i64:
      return 2;
    case ir::Dtype::u64:
      return 3;
    case ir::Dtype::boolean:
      return 4;
    default:
      return 0;
  }
}

/// Which operands of a loop are one number for all elements. Only operations of two have the last two.
enum class LoopForm : std::uint8_t { vectors, scalar_second, scalar_first };

struct LoopTable {
  /// Unused operands are not looked at. `out` may be an operand, but not overlap it otherwise.
  using Operation = void (*)(const void* a, const void* b, const void* c, void* out, std::size_t count);
  /// From an array to a block, and back. `stride` counts elements.
  using Load = void (*)(const std::byte* from, std::int64_t stride, void* out, std::size_t count);
  using Store = void (*)(const void* in, std::byte* to, std::int64_t stride, std::size_t count);
  /// Joins a block into one accumulator.
  using Reduce = void (*)(const void* in, void* accumulator, std::size_t count);
  /// Joins a block into a block of accumulators.
  using Accumulate = void (*)(const void* in, void* accumulators, std::size_t count);

  /// By opcode, wide type of the operands, form; null where there is none.
  Operation operation[ir::scalar_opcode_count][wide_count][3];
  /// By the wide type of what is cast, and the dtype it is cast to (held in its wide type).
  Operation cast[wide_count][dtype_count];
  /// 0.5 * x * (1 + erf(x * sqrt(1/2))) of f32, right also where nothing would be left of the sum.
  Operation gelu;
  /// Of f32, computed in f64: functions that are less exact above.
  Operation precise_tanh, precise_erf, precise_erfc, precise_gelu;
  /// Between a float and the i64 that holds its 32 bits as an i32, as a u32; and 64 bits as they are.
  Operation f32_to_i32, f32_to_u32, bits_to_f32, copy_bits;
  Load load[dtype_count];
  Store store[dtype_count];
  Operation fill[wide_count];  ///< with the one number `a`
  void (*count_up)(std::int64_t first, void* out, std::size_t count);
  /// By opcode and wide type of the block; sums and products of f32 have an f64 accumulator.
  Reduce reduce[ir::scalar_opcode_count][wide_count];
  Accumulate accumulate[ir::scalar_opcode_count][wide_count];
};

/// The loops for this processor.
[[nodiscard]] const LoopTable& block_loops();

namespace baseline {
[[nodiscard]] const LoopTable& loops();
}
namespace x86_64_v3 {
[[nodiscard]] const LoopTable& loops();
}
namespace x86_64_v4 {
[[nodiscard]] const LoopTable& loops();
}

}  // namespace tessera::kernel
