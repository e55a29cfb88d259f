#include "tessera/base/shared_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tessera/base/environment.h"
#include "tessera/base/library_statics.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"

using namespace tessera;

namespace {

#ifdef __aarch64__
constexpr const char* loader_folders[] = {
    "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
#else
constexpr const char* loader_folders[] = {
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
#endif

void add_folder(std::vector<std::string>& out, std::string_view folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.remove_suffix(1);
  if (folder.empty() || folder.front() != '/' || std::ranges::find(out, folder) != out.end()) return;
  out.emplace_back(folder);
}

/// Those of a list with colons, which may have semicolons for the loader.
void add_folders_of_variable(std::vector<std::string>& out, const char* variable) {
  const char* value = environment(variable);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(":;"), rest.size());
    add_folder(out, rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

/// Those of the loader's configuration, a folder or "include PATTERN" a line. An included file includes none.
void add_folders_of_file(std::vector<std::string>& out, const char* path, bool may_include) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::string_view text = std::string_view(line).substr(0, line.find('#'));
    const auto trim = [&] {
      while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
      while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    };
    trim();
    if (!text.starts_with("include")) {
      add_folder(out, text);
      continue;
    }
    text.remove_prefix(std::string_view("include").size());
    trim();
    glob_t found{};
    if (may_include && text.starts_with('/') && ::glob(std::string(text).c_str(), 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i) add_folders_of_file(out, found.gl_pathv[i], false);
    globfree(&found);
  }
}

/// What stands in a folder before others hides theirs, as it does for the loader, unless it is for programs of
/// another kind: folders for those of 32 bits may be in the same variable.
bool is_for_another_machine(const char* message) {
  return message != nullptr && std::string_view(message).find("wrong ELF class") != std::string_view::npos;
}

/// Whether the loader failed for a reason that may pass.
bool is_want_of_memory(std::string_view message) {
  return message.find("annot allocate memory") != std::string_view::npos ||
         message.find("failed to map") != std::string_view::npos;
}

/// The end waits for who is inside from the moment on that the library is there, not only once it is used.
void* load(const std::string& path) {
  const ForeignOpening opening;
  return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::vector<std::string> tessera::library_folders(std::span<const char* const> toolkit) {
  std::vector<std::string> out;
  add_folders_of_variable(out, "TESSERA_LIBRARY_PATH");
  add_folders_of_variable(out, "LD_LIBRARY_PATH");
  for (const char* folder : toolkit) add_folder(out, folder);
  for (const char* folder : loader_folders) add_folder(out, folder);
  add_folders_of_file(out, "/etc/ld.so.conf", true);
  return out;
}

Result<SharedLibrary> SharedLibrary::open(std::string_view what, std::span<const char* const> files,
                                          std::span<const char* const> toolkit) {
  const std::vector<std::string> folders = library_folders(toolkit);
  std::string tried;
  for (const char* file : files) {
    if (void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); handle != nullptr)
      return SharedLibrary(handle, file);
    tried += cat(tried.empty() ? "" : ", ", file);
    for (const std::string& folder : folders) {
      const std::string path = cat(folder, "/", file);
      if (::access(path.c_str(), F_OK) != 0) continue;
      if (void* handle = load(path); handle != nullptr) return SharedLibrary(handle, file);
      const char* why = ::dlerror();
      if (why != nullptr && is_want_of_memory(why)) return Error(ErrorCode::memory, cat(path, ": ", why));
      tried += cat(", which cannot be loaded: ", why == nullptr ? "no message" : why);
      if (!is_for_another_machine(why)) break;
    }
  }
  return Error(ErrorCode::not_found, cat(what, " is not on this system (tried ", tried, ")"));
}

SharedLibrary::SharedLibrary(void* handle, std::string file)
    : handle_(handle), file_(std::move(file)), outlives_program_(keep_later_statics(handle)) {}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }
