// Runs a plan step by step with the reference kernels.
#pragma once

#include "tessera/runtime/host_executable.h"

namespace tessera::runtime {

class ReferenceExecutable final : public HostExecutable {
 public:
  using HostExecutable::HostExecutable;

 protected:
  [[nodiscard]] Result<void> run_work(std::size_t index, HostWork& work) override;
};

}  // namespace tessera::runtime
