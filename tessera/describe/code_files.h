// Where the code of kernels on a device is.
#pragma once

#include <string>

#include "tessera/describe/description.h"

namespace tessera::description {

/// The file that the code of a kernel node is in: beside the description if its name is relative. REQUIRES
/// that the node has code.
[[nodiscard]] std::string code_path(const Description& description, const Node& node);

}  // namespace tessera::description
