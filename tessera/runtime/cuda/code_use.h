// Where kernels of the program's own are launched: their code is looked at once per launch, not once per
// node.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/runtime/cuda/device_function.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Launches that run one kernel of the program's own.
struct CodeUse {
  SourceRef source;
  std::vector<std::uint32_t> launches;
  op::KernelCodeRef seen = {};  ///< the code that was looked at last; null: none
  FunctionRef function = {};    ///< that was made then
};

/// Whether both are the same kernel, whatever its code is now. Null is no kernel of the program's own.
[[nodiscard]] bool is_same_code(const SourceRef& a, const SourceRef& b);

/// Notes that a launch runs the kernel of `source`. REQUIRES that its code is the program's own.
void add_use(std::vector<CodeUse>& uses, const SourceRef& source, std::uint32_t launch);

/// Whether its code may be other code than when it was looked at.
[[nodiscard]] bool may_have_changed(const CodeUse& use);

}  // namespace tessera::runtime::cuda
