// The libraries of the CUDA toolkit and the driver's, opened at run time.
#pragma once

#include <initializer_list>

#include "tessera/base/shared_library.h"

namespace tessera::runtime::cuda {

/// The first of `files` in the trusted folders, to which those of the toolkit belong.
[[nodiscard]] Result<SharedLibrary> open_library(std::string_view what,
                                                 std::initializer_list<const char*> files);

}  // namespace tessera::runtime::cuda
