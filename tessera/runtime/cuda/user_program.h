// Ops of the program's own as programs of a device: their kernels, and calls of libraries that are captured.
#pragma once

#include <span>

#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// What the host knows of an input that is a number.
struct InputNumber {
  enum class Kind : std::uint8_t {
    unknown,  ///< it is computed on the device
    slot,     ///< parameter `slot` of the plan
    value,    ///< `bits`: of a double for floats, of an i64 for the others
  };

  Kind kind = Kind::unknown;
  std::uint32_t slot = 0;
  std::uint64_t bits = 0;
};

/// Whether an op of the program's own is a function of the host: its arguments come there, and its results go
/// back.
[[nodiscard]] bool runs_on_host(const op::Card& card);

/// The number in an element of some dtype.
[[nodiscard]] InputNumber number_in(const std::byte* element, ir::Dtype dtype);

/// The program of a call whose card has code of its own. `numbers` are by input. Inputs with gaps are copied
/// first; what the code updates is a copy of the input, unless the result lies there.
[[nodiscard]] Result<StepProgram> user_program(const op::CallInfo& call, std::span<const op::Array> inputs,
                                               std::span<const op::Array> results,
                                               std::span<const InputNumber> numbers, SourceSpan at);

/// What a kernel is given for an argument that is a size, or the bits of a double for floats.
[[nodiscard]] std::uint64_t size_value(std::int64_t bits, ir::Dtype dtype, ir::Dtype as);
/// The dtype that a kernel gets a number of `dtype` as.
[[nodiscard]] ir::Dtype kernel_number(ir::Dtype dtype);

}  // namespace tessera::runtime::cuda
