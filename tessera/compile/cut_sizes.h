// Cuts a function where a size depends on data: at an integer that the program computes and that a later
// statement has as a size. Each part is a function of its own that knows all its sizes before it runs; the
// host learns the integer between two parts.
#pragma once

#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/plan/program.h"

namespace tessera::compiler {

/// The sizes of `function` are those of the whole, then the learned ones.
struct CutPart {
  ir::FunctionRef function;
  std::vector<plan::Source> inputs;
  std::vector<plan::LearnedSize> learned;
};

struct CutFunction {
  std::vector<CutPart> parts;  ///< one, the function itself, if no size depends on data
  std::vector<plan::Source> outputs;
};

/// As few parts as the sizes allow, each statement in the first that can have it. Sizes inside the bodies of
/// regions are the affair of those who run them. REQUIRES a valid function.
[[nodiscard]] Result<CutFunction> cut_at_learned_sizes(const ir::FunctionRef& function);

}  // namespace tessera::compiler
