// Names of ops of the program's own.
#pragma once

#include <string>
#include <string_view>

#include "tessera/tensor/tensor.h"

namespace tessera::detail {

/// Fails unless an op can be called so: letters, digits and _. `function` begins the message: "custom".
void check_op_name(std::string_view function, const std::string& name, Here here);

}  // namespace tessera::detail
