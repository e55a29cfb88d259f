// The program of a function with the names that the function has for its inputs, outputs and parameters.
#pragma once

#include "tessera/ir/function.h"
#include "tessera/plan/package.h"

namespace tessera::compiler {

/// `program` is one of `function`. An output that is no variable is called out0, out1, …; `outputs`, if not
/// empty, says how all of them are called.
[[nodiscard]] plan::Package package(const ir::Function& function, plan::Program program, std::string device,
                                    std::vector<std::string> outputs = {});

}  // namespace tessera::compiler
