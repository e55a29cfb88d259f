// A foreign library that is opened at run time, by its full path in a folder that is trusted.
//
// Searched are, in this order: the folders in TESSERA_LIBRARY_PATH, those in LD_LIBRARY_PATH, those that the
// caller names (of a toolkit), and those of the system (the loader's own and /etc/ld.so.conf). Of the two
// variables, paths that do not begin with '/' are left out, so the working directory is no place for a
// library, and a program with rights that its user has not reads neither. What cannot be loaded hides what later
// folders have of its name. A library that the program has loaded itself is taken as it is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"

namespace tessera {

class SharedLibrary {
 public:
  /// The first of `files` that is in a trusted folder, in the folders before those of the system also in
  /// `toolkit`. Stays open for ever. The error says what `what` is and which files were
  /// tried; it has code `memory` if the next call may find what this one had no memory for.
  [[nodiscard]] static Result<SharedLibrary> open(std::string_view what, std::span<const char* const> files,
                                                  std::span<const char* const> toolkit = {});

  /// A function of the library or of those it needs; null if there is none.
  [[nodiscard]] void* symbol(const char* name) const;
  /// Sets a pointer to a function; adds " name" to `missing` if there is none.
  template <class F>
  void find(F*& function, const char* name, std::string& missing) const {
    function = reinterpret_cast<F*>(symbol(name));
    if (function == nullptr) missing.append(" ").append(name);
  }
  /// Whether nothing that it makes from now on is destroyed when the program ends (library_statics.h). What it
  /// made while it was loaded is destroyed behind the end's wait for those inside (program_end.h).
  [[nodiscard]] bool outlives_program() const { return outlives_program_; }
  /// Its name, without the folder.
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  SharedLibrary(void* handle, std::string file);

  void* handle_;
  std::string file_;
  bool outlives_program_;
};

/// The folders that are searched, in order.
[[nodiscard]] std::vector<std::string> library_folders(std::span<const char* const> toolkit = {});

}  // namespace tessera
