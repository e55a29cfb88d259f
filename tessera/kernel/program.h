// A kernel as the interpreter runs it: for each pass a list of loops over blocks, with registers.
//
// A register is a place in the table of pointers; where it points is fixed for computed values, and moves
// along the array for those that are read or written in place.
#pragma once

#include <vector>

#include "tessera/kernel/block_loops.h"
#include "tessera/kernel/passes.h"

namespace tessera::kernel {

/// Along which axis the elements of a block lie.
enum class Lanes : std::uint8_t {
  outer,    ///< the last outer axis: many rows at once
  reduced,  ///< the last reduced axis: one row at a time
};

inline constexpr std::size_t block_elements = 1024;

/// The number of a pointer: that of the value, or behind the values that of a copy that fills a block.
using Register = std::uint32_t;

struct Step {
  enum class Kind : std::uint8_t {
    loop,   ///< loop(a, b, c, out)
    load,   ///< from operand `a`
    place,  ///< the index along axis `a`
    fill,   ///< a whole block with the one number in `a`
  };
  Kind kind = Kind::loop;
  bool keeps = false;  ///< load: the value is kept, so that it must be copied
  LoopTable::Operation loop = nullptr;
  Register a = 0, b = 0, c = 0, out = 0;
};

/// Memory of a register, by byte offset from the begin of the blocks.
struct Placement {
  Register number = 0;
  std::size_t offset = 0;
};

struct PassCode {
  std::vector<Placement> blocks;  ///< of the values at every point
  std::vector<Step> rows;
  std::vector<Step> elements;
  struct Reduction {
    ValueId value = 0;
    Register from = 0;
    LoopTable::Reduce reduce = nullptr;          ///< a block into one
    LoopTable::Accumulate accumulate = nullptr;  ///< a block into a block
    std::uint64_t neutral = 0;                   ///< bits of the accumulator
  };
  std::vector<Reduction> reductions;
  struct Save {
    std::uint32_t operand = 0;
    Register from = 0;
    bool can_write_in_place = false;  ///< what computes the value may write to the array
  };
  std::vector<Save> saves;
};

struct Program {
  Lanes lanes = Lanes::outer;
  std::vector<Step> uniforms;
  std::vector<PassCode> passes;
  std::vector<Step> last_rows;
  std::vector<PassCode::Save> row_saves;
  std::vector<Placement> blocks;  ///< registers that keep their block through all passes
  std::size_t block_bytes = 0;    ///< of all blocks
  std::size_t register_count = 0;
  std::vector<ValueId> kept;
  std::vector<std::size_t> kept_sizes;  ///< bytes of an element
};

[[nodiscard]] Program make_program(const Kernel& kernel, const Passes& passes, Lanes lanes,
                                   Accuracy accuracy = Accuracy::usual);

/// Bytes of a value in a register.
[[nodiscard]] std::size_t register_size(Dtype dtype);

}  // namespace tessera::kernel
