#include "tessera/runtime/reference/reference_device.h"

#include "tessera/op/reference.h"
#include "tessera/runtime/reference/reference_executable.h"

using namespace tessera;
using namespace tessera::runtime;

Result<void> ReferenceDevice::run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                  std::span<const op::Array> results) {
  return op::run_reference(call, inputs, results);
}

Result<std::unique_ptr<Executable>> ReferenceDevice::load(plan::PlanRef plan,
                                                          const std::shared_ptr<MemoryPool>& pool) {
  return std::unique_ptr<Executable>(std::make_unique<ReferenceExecutable>(std::move(plan), pool));
}
