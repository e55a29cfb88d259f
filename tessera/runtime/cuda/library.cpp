#include "tessera/runtime/cuda/library.h"

using namespace tessera;

Result<SharedLibrary> tessera::runtime::cuda::open_library(std::string_view what,
                                                           std::initializer_list<const char*> files) {
  constexpr const char* toolkit[] = {"/usr/local/cuda/lib64"};
  return SharedLibrary::open(what, std::span(files.begin(), files.size()), toolkit);
}
