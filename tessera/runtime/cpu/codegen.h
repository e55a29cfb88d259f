// From a kernel to a text of LLVM's IR: one function that computes the lanes of one row, or of neighbouring
// columns.
//
// The loops around it (the other outer axes) are in compiled_kernel.cpp, the same for every kernel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/small_vector.h"
#include "tessera/kernel/passes.h"
#include "tessera/kernel/program.h"

namespace tessera::runtime::cpu {

/// How an operand goes on along the lanes.
enum class LanePattern : std::uint8_t { repeated, contiguous, strided };

/// What of a run is part of the code. Sizes are not.
struct CodeShape {
  kernel::Lanes lanes = kernel::Lanes::outer;
  std::uint32_t lane_axis = 0;           ///< of the kernel
  SmallVector<LanePattern, 8> operands;  ///< by operand
  unsigned width = 16;                   ///< of vectors, in numbers
  bool is_precise = false;               ///< every operation is rounded as a single op rounds it
  bool can_repeat = true;                ///< inputs are still there after a run: the code may fail
  /// Results go past the caches: they are contiguous, and their vectors begin where lines of a cache do.
  bool streams = false;
  /// Of the kernel: what each lane reduces over, if lanes lie along an outer axis.
  std::optional<std::uint32_t> row_axis = std::nullopt;

  bool operator==(const CodeShape&) const = default;
};

/// What a generated function gets. Pointers are to the first lane.
struct Frame {
  std::byte* const* data = nullptr;        ///< by operand
  const std::int64_t* strides = nullptr;   ///< bytes along the lanes, by operand
  const std::uint64_t* scalars = nullptr;  ///< by value: parameters and extents, as a register holds them
  std::byte* const* kept = nullptr;        ///< by kept value: room for all lanes
  const std::int64_t* places = nullptr;    ///< the index along each axis of the kernel
  std::int64_t count = 0;                  ///< lanes
  /// Set to 1 where the code has no right result (an angle beyond the reach of its sine): the lanes must be
  /// computed in another way.
  std::uint8_t* failed = nullptr;
  std::int64_t row_count = 1;                 ///< points along the row axis, at least one
  const std::int64_t* row_strides = nullptr;  ///< bytes along it, by operand
};

using RowFunction = void (*)(const Frame* frame);

inline constexpr const char* row_function_name = "tessera_row";

/// Fails with code `unsupported` if an operation has no vector code.
[[nodiscard]] Result<std::string> generate(const kernel::Kernel& kernel, const kernel::Passes& passes,
                                           const CodeShape& shape);

}  // namespace tessera::runtime::cpu
