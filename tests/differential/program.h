// A random program: a function with everything it needs to run.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"

namespace tessera::differential {

struct Program {
  ir::FunctionRef function;
  std::vector<op::HostTensor> inputs;
  std::vector<std::int64_t> sizes;  ///< of the size symbols
  /// Values of the scalar parameters by slot, for two runs.
  std::vector<double> first_parameters;
  std::vector<double> second_parameters;
};

enum class Numbers : std::uint8_t {
  any,         ///< all dtypes, all ops, also NaN and infinities: for what must not change a bit
  continuous,  ///< ops with jumps take exact operands, no NaN on purpose: for what may round otherwise
};

struct ProgramOptions {
  Numbers numbers = Numbers::any;
  bool regions = true;
  bool gradients = true;
  bool symbolic = false;  ///< sizes are symbols of the function
  bool learned = true;    ///< some sizes depend on data
  bool customs = true;    ///< ops of the program's own (custom_ops.h) are among the calls
};

/// The program of a seed: at least five statements over the samples of the whole catalogue
/// (tests/data/op_samples.txt) and over what passes look for. The same for the same seed and options.
[[nodiscard]] Program random_program(std::uint64_t seed, const ProgramOptions& options);

}  // namespace tessera::differential
