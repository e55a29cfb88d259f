#include "tessera/runtime/cpu/llvm.h"

#include <sys/mman.h>

#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>

#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

// LLVM's types are pointers to things that only LLVM looks into.
struct Llvm::Functions {
  using Handle = void*;

  void (*InitializeX86TargetInfo)() = nullptr;
  void (*InitializeX86Target)() = nullptr;
  void (*InitializeX86TargetMC)() = nullptr;
  void (*InitializeX86AsmPrinter)() = nullptr;
  void (*GetVersion)(unsigned*, unsigned*, unsigned*) = nullptr;
  char* (*GetHostCPUName)() = nullptr;
  char* (*GetHostCPUFeatures)() = nullptr;
  char* (*GetDefaultTargetTriple)() = nullptr;
  void (*DisposeMessage)(char*) = nullptr;
  int (*GetTargetFromTriple)(const char*, Handle*, char**) = nullptr;
  Handle (*CreateTargetMachine)(Handle, const char*, const char*, const char*, int, int, int) = nullptr;
  void (*DisposeTargetMachine)(Handle) = nullptr;
  Handle (*CreateTargetDataLayout)(Handle) = nullptr;
  void (*DisposeTargetData)(Handle) = nullptr;
  Handle (*ContextCreate)() = nullptr;
  void (*ContextDispose)(Handle) = nullptr;
  Handle (*CreateMemoryBufferWithMemoryRangeCopy)(const char*, std::size_t, const char*) = nullptr;
  int (*ParseIRInContext)(Handle, Handle, Handle*, char**) = nullptr;
  void (*SetTarget)(Handle, const char*) = nullptr;
  void (*SetModuleDataLayout)(Handle, Handle) = nullptr;
  void (*DisposeModule)(Handle) = nullptr;
  int (*TargetMachineEmitToMemoryBuffer)(Handle, Handle, int, char**, Handle*) = nullptr;
  const char* (*GetBufferStart)(Handle) = nullptr;
  std::size_t (*GetBufferSize)(Handle) = nullptr;
  void (*DisposeMemoryBuffer)(Handle) = nullptr;

  /// A message of LLVM as a text of ours.
  std::string taken(char* message) const {
    std::string out = message == nullptr ? "no message" : message;
    if (message != nullptr) DisposeMessage(message);
    return out;
  }
};

namespace {

constexpr int relocation_pic = 2, code_model_small = 3, file_object = 1;

/// Releases a handle at the end of a scope. What LLVM was thrown out of is left as it is: it may be locked.
class Held {
 public:
  Held(void* handle, void (*dispose)(void*), const std::atomic<bool>& is_broken)
      : handle_(handle), dispose_(dispose), is_broken_(is_broken) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (handle_ != nullptr && !is_broken_) dispose_(handle_);
  }
  [[nodiscard]] void* get() const { return handle_; }

 private:
  void* handle_;
  void (*dispose_)(void*);
  const std::atomic<bool>& is_broken_;
};

/// LLVM would end the program.
[[noreturn]] void throw_bad_alloc(void*, const char*, bool) { throw std::bad_alloc(); }
[[noreturn]] void throw_failure(const char* reason) { throw std::runtime_error(reason); }

Error broken_error() {
  return Error(ErrorCode::unsupported, "LLVM found no memory, after which it cannot be used any more");
}

/// Less than this, and LLVM may find none where it has no way out (the library itself has 110 MB).
constexpr std::size_t memory_to_open = std::size_t{256} << 20, memory_to_compile = std::size_t{64} << 20;

/// Whether so much memory could be had now: nothing of it is touched.
bool has_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

Error too_little_memory(std::size_t bytes) {
  return Error(ErrorCode::memory, cat("LLVM is not asked: there are no ", bytes >> 20, " MiB for it"));
}

}  // namespace

Llvm::Llvm() : functions_(std::make_unique<Functions>()) {}
Llvm::~Llvm() = default;

Result<const Llvm*> Llvm::open() {
  static auto& opened = *new Once<const Llvm*>;  // never destroyed
  return opened.get(&try_open);
}

/// An exception must not pass through LLVM, which leaves its locks locked then: it is not called again.
template <class F, class... Arguments>
auto Llvm::call(F* function, Arguments... arguments) const {
  try {
    return function(arguments...);
  } catch (...) {
    is_broken_ = true;
    throw;
  }
}

Result<const Llvm*> Llvm::try_open() {
#ifndef __x86_64__
  return Error(ErrorCode::unsupported, "code is generated for x86-64 only");
#else
  const ForeignOpening opening;
  if (!opening.is_inside())
    return Error(ErrorCode::unsupported,
                 "nothing is opened while the program ends, nor in the child of a fork");
  if (!has_memory(memory_to_open)) return too_little_memory(memory_to_open);
  std::string tried;
  for (const char* name : {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1",
                           "libLLVM-17.so.1", "libLLVM-16.so.1"}) {
    const auto library = SharedLibrary::open("LLVM", std::span(&name, 1));
    if (!library) {
      if (library.error().code() == ErrorCode::memory) return library.error();
      tried += cat(tried.empty() ? "" : ", ", name);
      continue;
    }
    // Lives as long as the program: LLVM has state of its own that must not go first.
    auto out = std::unique_ptr<Llvm, void (*)(Llvm*)>(new Llvm, [](Llvm* llvm) { delete llvm; });
    auto loaded = out->load(*library);
    if (loaded) {
      out->outlives_program_ = library->outlives_program();
      return static_cast<const Llvm*>(out.release());
    }
    tried += cat(tried.empty() ? "" : ", ", name, ", which cannot be used: ", loaded.error().message());
  }
  return Error(ErrorCode::not_found, cat("no LLVM of versions 16 to 19 on this system (tried ", tried, ")"));
#endif
}

Result<void> Llvm::load(const SharedLibrary& library) {
  Functions& f = *functions_;
  std::string missing;
#define TESSERA_FIND(name) library.find(f.name, "LLVM" #name, missing)
  TESSERA_FIND(InitializeX86TargetInfo);
  TESSERA_FIND(InitializeX86Target);
  TESSERA_FIND(InitializeX86TargetMC);
  TESSERA_FIND(InitializeX86AsmPrinter);
  TESSERA_FIND(GetVersion);
  TESSERA_FIND(GetHostCPUName);
  TESSERA_FIND(GetHostCPUFeatures);
  TESSERA_FIND(GetDefaultTargetTriple);
  TESSERA_FIND(DisposeMessage);
  TESSERA_FIND(GetTargetFromTriple);
  TESSERA_FIND(CreateTargetMachine);
  TESSERA_FIND(DisposeTargetMachine);
  TESSERA_FIND(CreateTargetDataLayout);
  TESSERA_FIND(DisposeTargetData);
  TESSERA_FIND(ContextCreate);
  TESSERA_FIND(ContextDispose);
  TESSERA_FIND(CreateMemoryBufferWithMemoryRangeCopy);
  TESSERA_FIND(ParseIRInContext);
  TESSERA_FIND(SetTarget);
  TESSERA_FIND(SetModuleDataLayout);
  TESSERA_FIND(DisposeModule);
  TESSERA_FIND(TargetMachineEmitToMemoryBuffer);
  TESSERA_FIND(GetBufferStart);
  TESSERA_FIND(GetBufferSize);
  TESSERA_FIND(DisposeMemoryBuffer);
#undef TESSERA_FIND
  if (!missing.empty()) return Error(ErrorCode::unsupported, cat("the library lacks", missing));
  try {
    return start(library);
  } catch (const std::exception& thrown) {
    if (!is_broken_) throw;
    return Error(ErrorCode::unsupported, cat("it does not start: ", thrown.what()));
  }
}

Result<void> Llvm::start(const SharedLibrary& library) {
  const Functions& f = *functions_;
  // Not of the C interface; where it is called otherwise, want of memory ends the program.
  using OnBadAlloc = void (*)(void (*)(void*, const char*, bool), void*);
  if (const auto on_bad_alloc = reinterpret_cast<OnBadAlloc>(
          library.symbol("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_")))
    call(on_bad_alloc, &throw_bad_alloc, nullptr);
  using OnFailure = void (*)(void (*)(const char*));
  if (const auto on_failure = reinterpret_cast<OnFailure>(library.symbol("LLVMInstallFatalErrorHandler")))
    call(on_failure, &throw_failure);
  call(f.InitializeX86TargetInfo);
  call(f.InitializeX86Target);
  call(f.InitializeX86TargetMC);
  call(f.InitializeX86AsmPrinter);
  unsigned major = 0, minor = 0, patch = 0;
  call(f.GetVersion, &major, &minor, &patch);
  version_ = cat(major, ".", minor, ".", patch);
  cpu_ = f.taken(call(f.GetHostCPUName));
  features_ = f.taken(call(f.GetHostCPUFeatures));
  triple_ = f.taken(call(f.GetDefaultTargetTriple));
  char* message = nullptr;
  if (call(f.GetTargetFromTriple, triple_.c_str(), &target_, &message) != 0)
    return Error(ErrorCode::unsupported, cat("no target for ", triple_, ": ", f.taken(message)));
  return {};
}

Result<std::vector<std::byte>> Llvm::compile(const std::string& text, CodeQuality quality) const {
  const ForeignStay stay;
  if (!stay.is_inside())
    return Error(ErrorCode::unsupported,
                 "no code is made while the program ends, nor in the child of a fork");
  const auto which = static_cast<std::size_t>(quality);
  std::unique_lock<std::mutex> alone;
  if (!has_made_[which]) alone = std::unique_lock(first_[which]);
  if (is_broken_) return broken_error();
  if (!has_memory(memory_to_compile)) return too_little_memory(memory_to_compile);
  try {
    auto out = compile_inside(text, quality);
    if (out) has_made_[which] = true;
    return out;
  } catch (const std::exception&) {
    if (is_broken_) return broken_error();
    throw;
  }
}

Result<std::vector<std::byte>> Llvm::compile_inside(const std::string& text, CodeQuality quality) const {
  const Functions& f = *functions_;
  const int level = quality == CodeQuality::fast ? 0 : 2;
  const Held context(call(f.ContextCreate), f.ContextDispose, is_broken_);
  const Held machine(call(f.CreateTargetMachine, target_, triple_.c_str(), cpu_.c_str(), features_.c_str(),
                          level, relocation_pic, code_model_small),
                     f.DisposeTargetMachine, is_broken_);
  if (machine.get() == nullptr) return Error(ErrorCode::device, "LLVM makes no code for this processor");
  char* message = nullptr;
  void* module = nullptr;
  // The parser takes the buffer.
  void* buffer = call(f.CreateMemoryBufferWithMemoryRangeCopy, text.data(), text.size(), "kernel");
  if (call(f.ParseIRInContext, context.get(), buffer, &module, &message) != 0)
    return Error(ErrorCode::internal, cat("LLVM does not read the kernel: ", f.taken(message)));
  const Held held_module(module, f.DisposeModule, is_broken_);
  const Held layout(call(f.CreateTargetDataLayout, machine.get()), f.DisposeTargetData, is_broken_);
  call(f.SetTarget, module, triple_.c_str());
  call(f.SetModuleDataLayout, module, layout.get());
  void* object = nullptr;
  if (call(f.TargetMachineEmitToMemoryBuffer, machine.get(), module, file_object, &message, &object) != 0)
    return Error(ErrorCode::device, cat("LLVM generates no code for the kernel: ", f.taken(message)));
  const Held held_object(object, f.DisposeMemoryBuffer, is_broken_);
  const auto bytes = std::as_bytes(std::span(f.GetBufferStart(object), f.GetBufferSize(object)));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}
