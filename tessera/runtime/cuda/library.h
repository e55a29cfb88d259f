// A shared library that is opened at run time and stays open.
#pragma once

#include <initializer_list>
#include <string>

#include "tessera/base/result.h"

namespace tessera::runtime::cuda {

class Library {
 public:
  /// The first of `files` that the system has. The error says what `what` is and which files were tried.
  [[nodiscard]] static Result<Library> open(std::string_view what, std::initializer_list<const char*> files);

  /// Sets a pointer to a function; adds " name" to `missing` if there is none.
  template <class F>
  void find(F*& function, const char* name, std::string& missing) const {
    function = reinterpret_cast<F*>(symbol(name));
    if (function == nullptr) missing.append(" ").append(name);
  }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  Library(void* handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  [[nodiscard]] void* symbol(const char* name) const;

  void* handle_;
  std::string file_;
};

}  // namespace tessera::runtime::cuda
