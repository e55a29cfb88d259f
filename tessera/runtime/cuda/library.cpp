#include "tessera/runtime/cuda/library.h"

#include <dlfcn.h>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

Result<Library> Library::open(std::string_view what, std::initializer_list<const char*> files) {
  // Where the toolkit puts its libraries when the loader was not told of it.
  constexpr const char* folders[] = {"", "/usr/local/cuda/lib64/"};
  std::string tried;
  for (const char* file : files) {
    tried += cat(tried.empty() ? "" : ", ", file);
    for (const char* folder : folders)
      if (void* handle = dlopen(cat(folder, file).c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
        return Library(handle, file);
  }
  return Error(ErrorCode::not_found, cat(what, " is not on this system (tried ", tried, ")"));
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }
