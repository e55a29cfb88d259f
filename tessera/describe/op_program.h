// How op nodes run that are not run one by one: as one program, made by whoever has a compiler. This room
// knows none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"

namespace tessera::description {

/// A function that is ready to run. One thread at a time.
class OpProgram {
 public:
  virtual ~OpProgram() = default;

  /// Inputs and results are contiguous and have the types of the function; a result may lie where an input
  /// does. `numbers` are the parameters by slot: bits of a double for floats, of an i64 for the others. After
  /// an error the inputs are as they were.
  [[nodiscard]] virtual Result<void> run(std::span<const op::Array> inputs,
                                         std::span<const std::uint64_t> numbers,
                                         std::span<const op::Array> results) = 0;
  /// The most memory that it holds besides inputs and results.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Thread-safe.
class OpCompiler {
 public:
  virtual ~OpCompiler() = default;
  /// Fails with code `memory` if the program would hold more than `memory` bytes.
  [[nodiscard]] virtual Result<std::shared_ptr<OpProgram>> compile(const ir::FunctionRef& function,
                                                                   std::uint64_t memory) = 0;
};

}  // namespace tessera::description
