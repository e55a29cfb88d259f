// LLVM, opened at run time: the few functions of its C interface that turn a text of IR into object code.
// Nothing of LLVM is needed to build.
#pragma once

#include <sys/types.h>

#include <memory>
#include <shared_mutex>
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
  /// The newest library of versions 19 to 16 that the system has and that can be used. Tried once; the error
  /// says what was looked for. Nothing is opened before the first call.
  [[nodiscard]] static Result<const Llvm*> open();

  /// Position-independent object code of this machine (ELF, x86-64) for a module in text form. An error once
  /// the program ends: the end waits for what is compiled then, since LLVM's own state goes with it.
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
  static Result<Llvm*>& only();
  static Result<Llvm*> try_open();
  /// At the end of the program.
  static void end();
  Result<void> load(const SharedLibrary& library);

  std::unique_ptr<Functions> functions_;
  void* target_ = nullptr;
  mutable std::shared_mutex in_use_;
  bool is_over_ = false;  ///< the program ends
  bool outlives_program_ = false;
  pid_t process_ = 0;  ///< that opened it
  std::string version_, cpu_, features_, triple_;
};

}  // namespace tessera::runtime::cpu
