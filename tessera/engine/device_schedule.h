// The schedule of a description as steps that a device holds.
#pragma once

#include <memory>

#include "tessera/describe/graph_device.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// Fails with code `unsupported` if the device holds none.
[[nodiscard]] Result<std::unique_ptr<description::DeviceSchedule>> make_device_schedule(
    std::shared_ptr<runtime::Device> device);

}  // namespace tessera::engine
