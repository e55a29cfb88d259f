// LLVM, opened at run time: the few functions of its C interface that turn a text of IR into object code.
// Nothing of LLVM is needed to build.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/shared_library.h"

namespace tessera::runtime::cpu {

/// How much work the code generator may do.
enum class CodeQuality : std::uint8_t { fast, good };

/// Thread-safe.
class Llvm {
 public:
  /// The newest library of versions 19 to 16 that the system has and that can be used. The error says what
  /// was looked for; one of too little memory has code `memory`, and the next call tries again. Nothing is
  /// opened before the first call.
  [[nodiscard]] static Result<const Llvm*> open();

  /// Position-independent object code of this machine (ELF, x86-64) for a module in text form. An error once
  /// the program ends: the end waits for what is compiled then (program_end.h). LLVM has no way out
  /// when it finds no memory: from then on every call is an error.
  [[nodiscard]] Result<std::vector<std::byte>> compile(const std::string& text, CodeQuality quality) const;

  /// Whether a program may end while another thread compiles. If not, the end may destroy what it needs.
  [[nodiscard]] bool outlives_program() const { return outlives_program_; }

  /// "16.0.6"
  [[nodiscard]] const std::string& version() const { return version_; }
  /// The processor and its features, as LLVM names them: code for one is not code for another.
  [[nodiscard]] const std::string& cpu() const { return cpu_; }
  [[nodiscard]] const std::string& features() const { return features_; }

 private:
  struct Functions;
  Llvm();
  ~Llvm();
  static Result<const Llvm*> try_open();
  Result<void> load(const SharedLibrary& library);
  Result<void> start(const SharedLibrary& library);
  [[nodiscard]] Result<std::vector<std::byte>> compile_inside(const std::string& text,
                                                              CodeQuality quality) const;
  template <class F, class... Arguments>
  auto call(F* function, Arguments... arguments) const;

  std::unique_ptr<Functions> functions_;
  void* target_ = nullptr;
  bool outlives_program_ = false;
  /// The first code of each quality sets up what LLVM has once: alone, so that nobody waits for what is left
  /// locked if that fails.
  mutable std::array<std::mutex, 2> first_;
  mutable std::array<std::atomic<bool>, 2> has_made_{};
  mutable std::atomic<bool> is_broken_{false};  ///< an exception has passed through it
  std::string version_, cpu_, features_, triple_;
};

}  // namespace tessera::runtime::cpu
