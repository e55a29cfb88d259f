// The caller's place in errors about a file that is named on the command line: the file, not a line of this
// program.
#pragma once

#include "tessera/tensor/tensor.h"

namespace tessera::cli {

inline const Here nowhere("", 0);

}  // namespace tessera::cli
