// Where the code of kernels on a device is.
#pragma once

#include <memory>
#include <string>

#include "tessera/describe/description.h"
#include "tessera/op/kernel_code.h"

namespace tessera::description {

/// The file that the code of a kernel node is in. REQUIRES that the node has code, as does the other.
[[nodiscard]] std::string code_path(const Description& description, const Node& node);
/// What is in the file. A relative name is opened below the folder of the description, through no link; an
/// absolute one was given by the program.
[[nodiscard]] std::shared_ptr<op::KernelSource> code_source(const Description& description, const Node& node);

}  // namespace tessera::description
