// The program of a function with the names that the function has for its inputs, outputs and parameters.
#pragma once

#include "tessera/ir/function.h"
#include "tessera/plan/package.h"

namespace tessera::compiler {

struct PackageOptions {
  std::vector<std::string> inputs = {};        ///< if not empty: how all of them are called, also the flags
  std::vector<plan::Flag> flags = {};          ///< that choose among the programs
  std::vector<std::string> outputs = {};       ///< if not empty: how all of them are called
  std::vector<std::uint32_t> states = {};      ///< outputs that are the last inputs of the next run
  std::vector<plan::SourceBlock> blocks = {};  ///< of the lines of the program
};

/// `programs` are that of `function`, and those for other values of the flags, with the same parameters. An
/// output that is no variable is called out0, out1, … unless the options say how.
[[nodiscard]] plan::Package package(const ir::Function& function, std::vector<plan::Program> programs,
                                    std::string device, PackageOptions options = {});

}  // namespace tessera::compiler
