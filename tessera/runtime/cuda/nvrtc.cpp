#include "tessera/runtime/cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tessera/base/environment.h"
#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/library.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

// NVRTC's programs are pointers to things that only it looks into; results are numbers, 0 for success.
struct Nvrtc::Functions {
  using Program = void*;

  int (*Version)(int*, int*) = nullptr;
  const char* (*GetErrorString)(int) = nullptr;
  int (*GetNumSupportedArchs)(int*) = nullptr;
  int (*GetSupportedArchs)(int*) = nullptr;
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*) = nullptr;
  int (*DestroyProgram)(Program*) = nullptr;
  int (*CompileProgram)(Program, int, const char* const*) = nullptr;
  int (*GetProgramLogSize)(Program, std::size_t*) = nullptr;
  int (*GetProgramLog)(Program, char*) = nullptr;
  int (*GetCUBINSize)(Program, std::size_t*) = nullptr;
  int (*GetCUBIN)(Program, char*) = nullptr;
  int (*GetPTXSize)(Program, std::size_t*) = nullptr;
  int (*GetPTX)(Program, char*) = nullptr;

  Result<void> checked(int result, std::string_view what) const {
    if (result == 0) return {};
    return Error(ErrorCode::device, cat("nvrtc", what, ": ", GetErrorString(result)));
  }
  [[nodiscard]] std::string log_of(Program program) const {
    std::size_t bytes = 0;
    if (GetProgramLogSize(program, &bytes) != 0 || bytes == 0) return "no message";
    std::string out(bytes, '\0');
    if (GetProgramLog(program, out.data()) != 0) return "no message";
    while (!out.empty() && (out.back() == '\0' || out.back() == '\n')) out.pop_back();
    return out;
  }
};

namespace {

/// Messages are for people: the first errors say what is wrong.
constexpr std::size_t longest_log = 4000;

/// Generated code includes nothing. Others find what lies beside them and CUDA's own headers.
std::vector<std::string> include_options(const Source& source) {
  std::vector<std::string> out;
  if (source.text.find("#include") == std::string::npos) return out;
  const std::size_t slash = source.file.rfind('/');
  out.push_back(cat("--include-path=", slash == std::string::npos ? "." : source.file.substr(0, slash + 1)));
  const char* home = environment("CUDA_HOME");
  out.push_back(cat("--include-path=", home == nullptr ? "/usr/local/cuda" : home, "/include"));
  return out;
}

}  // namespace

Nvrtc::Nvrtc() : functions_(std::make_unique<Functions>()) {}
Nvrtc::~Nvrtc() = default;

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open() {
  static auto& opened = *new Once<std::shared_ptr<const Nvrtc>>;  // never destroyed
  return opened.get(&try_open);
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::try_open() {
  const ForeignOpening opening;
  if (!opening.is_inside())
    return Error(ErrorCode::unsupported,
                 "nothing is opened while the program ends, nor in the child of a fork");
  const SharedLibrary library = TESSERA_TRY(open_library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}));
  const std::shared_ptr<Nvrtc> out(new Nvrtc);
  Functions& f = *out->functions_;
  std::string missing;
#define TESSERA_FIND(name) library.find(f.name, "nvrtc" #name, missing)
  TESSERA_FIND(Version);
  TESSERA_FIND(GetErrorString);
  TESSERA_FIND(GetNumSupportedArchs);
  TESSERA_FIND(GetSupportedArchs);
  TESSERA_FIND(CreateProgram);
  TESSERA_FIND(DestroyProgram);
  TESSERA_FIND(CompileProgram);
  TESSERA_FIND(GetProgramLogSize);
  TESSERA_FIND(GetProgramLog);
  TESSERA_FIND(GetCUBINSize);
  TESSERA_FIND(GetCUBIN);
  TESSERA_FIND(GetPTXSize);
  TESSERA_FIND(GetPTX);
#undef TESSERA_FIND
  if (!missing.empty()) return Error(ErrorCode::unsupported, cat(library.file(), " lacks", missing));
  int major = 0, minor = 0, count = 0;
  TESSERA_TRY(f.checked(f.Version(&major, &minor), "Version"));
  TESSERA_TRY(f.checked(f.GetNumSupportedArchs(&count), "GetNumSupportedArchs"));
  out->targets_.resize(static_cast<std::size_t>(count));
  TESSERA_TRY(f.checked(f.GetSupportedArchs(out->targets_.data()), "GetSupportedArchs"));
  std::sort(out->targets_.begin(), out->targets_.end());
  out->identity_ = cat("nvrtc ", major, ".", minor);
  return std::shared_ptr<const Nvrtc>(out);
}

Result<std::vector<std::byte>> Nvrtc::compile(const Source& source, int sm) const {
  // Until one program was compiled each may load more libraries.
  std::optional<ForeignOpening> opening;
  if (!has_compiled_) opening.emplace();
  const ForeignStay stay;
  if (!stay.is_inside()) return Error(ErrorCode::unsupported, "nothing is compiled while the program ends");
  const Functions& f = *functions_;
  const auto above = std::upper_bound(targets_.begin(), targets_.end(), sm);
  if (above == targets_.begin())
    return Error(ErrorCode::unsupported,
                 cat(identity_, " makes no code for devices of capability ", sm / 10, ".", sm % 10));
  const bool is_exact = above[-1] == sm;
  const std::string target = cat("--gpu-architecture=", is_exact ? "sm_" : "compute_", above[-1]);
  const std::vector<std::string> folders = include_options(source);
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "-default-device"};
  for (const std::string& folder : folders) options.push_back(folder.c_str());

  Functions::Program program = nullptr;
  TESSERA_TRY(
      f.checked(f.CreateProgram(&program, source.text.c_str(), source.file.c_str(), 0, nullptr, nullptr),
                "CreateProgram"));
  const auto destroy = [&f](void* held) { f.DestroyProgram(&held); };
  const std::unique_ptr<void, decltype(destroy)> held(program, destroy);
  const int result = f.CompileProgram(program, static_cast<int>(options.size()), options.data());
  has_compiled_ = true;
  if (result != 0)
    return Error(ErrorCode::device,
                 cat("NVRTC does not compile '", source.entry, "': ", f.GetErrorString(result), "\n",
                     f.log_of(program).substr(0, longest_log)));
  std::size_t bytes = 0;
  TESSERA_TRY(f.checked((is_exact ? f.GetCUBINSize : f.GetPTXSize)(program, &bytes), "GetCUBINSize"));
  std::vector<std::byte> out(bytes);
  TESSERA_TRY(f.checked((is_exact ? f.GetCUBIN : f.GetPTX)(program, reinterpret_cast<char*>(out.data())),
                        "GetCUBIN"));
  return out;
}
