#include "tessera/runtime/reference/reference_device.h"

#include "tessera/op/reference.h"

using namespace tessera;

Result<void> runtime::ReferenceDevice::run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results) {
  return op::run_reference(call, inputs, results);
}
