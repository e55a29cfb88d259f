// Object code in executable memory. Loads what LLVM's code generator writes, from memory or from a file,
// without LLVM: sections side by side, references between them resolved.
#pragma once

#include <span>

#include "tessera/base/result.h"

namespace tessera::runtime::cpu {

class ObjectCode {
 public:
  /// From an ELF object of x86-64 that refers to nothing outside of itself. Any bytes may be given: what is
  /// not such an object is an error.
  [[nodiscard]] static Result<ObjectCode> load(std::span<const std::byte> object, std::string_view function);

  ObjectCode(ObjectCode&& other) noexcept;
  ObjectCode& operator=(ObjectCode&& other) noexcept;
  ~ObjectCode();

  /// Where the function begins.
  [[nodiscard]] const void* entry() const { return entry_; }

 private:
  ObjectCode() = default;

  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  const void* entry_ = nullptr;
};

}  // namespace tessera::runtime::cpu
