#include "tessera/runtime/cuda/emulator/nvrtc_check.h"

#include <sstream>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/library.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

using Program = void*;

/// The functions that are needed, by their names in the library.
struct Nvrtc {
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  bool is_open = false;
};

template <class F>
bool find(const SharedLibrary& library, F& function, const char* name) {
  function = reinterpret_cast<F>(library.symbol(name));
  return function != nullptr;
}

Nvrtc open_nvrtc() {
  Nvrtc out;
  const auto library = open_library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  out.is_open = library && find(*library, out.create, "nvrtcCreateProgram") &&
                find(*library, out.compile, "nvrtcCompileProgram") &&
                find(*library, out.log_size, "nvrtcGetProgramLogSize") &&
                find(*library, out.log, "nvrtcGetProgramLog") &&
                find(*library, out.destroy, "nvrtcDestroyProgram");
  return out;
}

const Nvrtc& nvrtc() {
  static const Nvrtc table = open_nvrtc();
  return table;
}

std::string numbered(const std::string& text) {
  std::istringstream in(text);
  std::string out, line;
  for (int number = 1; std::getline(in, line); ++number) out += cat(number, ": ", line, "\n");
  return out;
}

}  // namespace

std::string tessera::runtime::cuda::why_no_nvrtc() { return nvrtc().is_open ? "" : "there is no libnvrtc"; }

Result<void> tessera::runtime::cuda::check_by_nvrtc(const Source& source, const std::string& architecture) {
  const Nvrtc& library = nvrtc();
  Program program = nullptr;
  if (library.create(&program, source.text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
    return Error(ErrorCode::internal, "nvrtcCreateProgram failed");
  const std::string arch = cat("-arch=", architecture);
  const char* const options[] = {arch.c_str(), "--std=c++17", "-default-device"};
  const int status = library.compile(program, 3, options);
  std::size_t size = 0;
  library.log_size(program, &size);
  std::string log(size, '\0');
  library.log(program, log.data());
  library.destroy(&program);
  if (status != 0)
    return Error(ErrorCode::invalid_argument, cat("NVRTC refuses '", source.entry, "' for ", architecture,
                                                  ":\n", log, numbered(source.text)));
  return {};
}
