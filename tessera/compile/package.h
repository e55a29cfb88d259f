// The program of a function with the names that the function has for its inputs, outputs and parameters.
#pragma once

#include "tessera/ir/function.h"
#include "tessera/plan/package.h"

namespace tessera::compiler {

struct PackageOptions {
  std::vector<std::string> outputs = {};   ///< if not empty: how all of them are called
  std::vector<std::uint32_t> states = {};  ///< outputs that are the last inputs of the next run
};

/// `program` is one of `function`. An output that is no variable is called out0, out1, … unless the options
/// say how.
[[nodiscard]] plan::Package package(const ir::Function& function, plan::Program program, std::string device,
                                    PackageOptions options = {});

}  // namespace tessera::compiler
