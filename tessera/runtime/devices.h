// The devices of this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/runtime/device.h"

namespace tessera::runtime {

/// Their names, the reference first.
[[nodiscard]] std::vector<std::string> device_names();

/// Opens a device. The error for a name that is none lists those there are.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(std::string_view name);

}  // namespace tessera::runtime
