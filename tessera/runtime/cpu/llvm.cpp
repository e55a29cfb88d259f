#include "tessera/runtime/cpu/llvm.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/library_statics.h"

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

/// Releases a handle at the end of a scope.
class Held {
 public:
  Held(void* handle, void (*dispose)(void*)) : handle_(handle), dispose_(dispose) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (handle_ != nullptr) dispose_(handle_);
  }
  [[nodiscard]] void* get() const { return handle_; }

 private:
  void* handle_;
  void (*dispose_)(void*);
};

}  // namespace

Llvm::Llvm() : functions_(std::make_unique<Functions>()) {}
Llvm::~Llvm() = default;

Result<Llvm*>& Llvm::only() {
  static auto& found = *new Result<Llvm*>(try_open());  // never destroyed
  return found;
}

Result<const Llvm*> Llvm::open() {
  const Result<Llvm*>& found = only();
  return found ? Result<const Llvm*>(*found) : Result<const Llvm*>(found.error());
}

void Llvm::end() {
  Llvm& llvm = **only();
  // Who compiled when the process was forked is no thread of the child: it would wait for ever.
  if (getpid() != llvm.process_) return;
  const std::lock_guard lock(llvm.in_use_);
  llvm.is_over_ = true;
}

Result<Llvm*> Llvm::try_open() {
#ifndef __x86_64__
  return Error(ErrorCode::unsupported, "code is generated for x86-64 only");
#else
  std::string tried;
  for (const char* name : {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1",
                           "libLLVM-17.so.1", "libLLVM-16.so.1"}) {
    const auto library = SharedLibrary::open("LLVM", std::span(&name, 1));
    if (!library) {
      tried += cat(tried.empty() ? "" : ", ", name);
      continue;
    }
    // Lives as long as the program: LLVM has state of its own that must not go first.
    auto* out = new Llvm;
    auto loaded = out->load(*library);
    // What the library made while it was loaded is destroyed after end() has waited, what it makes later
    // never.
    if (loaded && std::atexit(&Llvm::end) == 0)
      out->outlives_program_ = keep_later_statics(library->handle());
    if (loaded) return out;
    delete out;
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
  f.InitializeX86TargetInfo();
  f.InitializeX86Target();
  f.InitializeX86TargetMC();
  f.InitializeX86AsmPrinter();
  unsigned major = 0, minor = 0, patch = 0;
  f.GetVersion(&major, &minor, &patch);
  version_ = cat(major, ".", minor, ".", patch);
  cpu_ = f.taken(f.GetHostCPUName());
  features_ = f.taken(f.GetHostCPUFeatures());
  triple_ = f.taken(f.GetDefaultTargetTriple());
  process_ = getpid();
  char* message = nullptr;
  if (f.GetTargetFromTriple(triple_.c_str(), &target_, &message) != 0)
    return Error(ErrorCode::unsupported, cat("no target for ", triple_, ": ", f.taken(message)));
  return {};
}

Result<std::vector<std::byte>> Llvm::compile(const std::string& text, CodeQuality quality) const {
  const std::shared_lock lock(in_use_);
  if (is_over_) return Error(ErrorCode::unsupported, "no code is made while the program ends");
  const Functions& f = *functions_;
  const int level = quality == CodeQuality::fast ? 0 : 2;
  const Held context(f.ContextCreate(), f.ContextDispose);
  const Held machine(f.CreateTargetMachine(target_, triple_.c_str(), cpu_.c_str(), features_.c_str(), level,
                                           relocation_pic, code_model_small),
                     f.DisposeTargetMachine);
  if (machine.get() == nullptr) return Error(ErrorCode::device, "LLVM makes no code for this processor");
  char* message = nullptr;
  void* module = nullptr;
  // The parser takes the buffer.
  void* buffer = f.CreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "kernel");
  if (f.ParseIRInContext(context.get(), buffer, &module, &message) != 0)
    return Error(ErrorCode::internal, cat("LLVM does not read the kernel: ", f.taken(message)));
  const Held held_module(module, f.DisposeModule);
  const Held layout(f.CreateTargetDataLayout(machine.get()), f.DisposeTargetData);
  f.SetTarget(module, triple_.c_str());
  f.SetModuleDataLayout(module, layout.get());
  void* object = nullptr;
  if (f.TargetMachineEmitToMemoryBuffer(machine.get(), module, file_object, &message, &object) != 0)
    return Error(ErrorCode::device, cat("LLVM generates no code for the kernel: ", f.taken(message)));
  const Held held_object(object, f.DisposeMemoryBuffer);
  const auto bytes = std::as_bytes(std::span(f.GetBufferStart(object), f.GetBufferSize(object)));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}
