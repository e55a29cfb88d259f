// How a kernel begins that may be started while what it depends on still runs.
#pragma once

#include <string_view>

namespace tessera::runtime::cuda {

/// `begin_kernel()`: what comes after may start, and wait as this one does; what runs before is done behind
/// it. Nothing on devices that cannot do that. A kernel that calls it first is a `Source` that waits.
[[nodiscard]] std::string_view begin_text();

}  // namespace tessera::runtime::cuda
