#include "cli/files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

constexpr std::size_t largest_file = std::size_t{4} << 30;
constexpr std::size_t largest_stream = std::size_t{256} << 20;  // a pipe or a device may have no end

}  // namespace

std::string tessera::cli::shown(const std::string& path) { return path == "-" ? "<stdin>" : printable(path); }

Result<std::string> tessera::cli::read_text(const std::string& path) {
  const auto fail = [&](const char* why) {
    return Error(ErrorCode::io, cat("cannot read ", shown(path), ": ", why));
  };
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return fail(std::strerror(errno));
  struct stat info {};
  if (fstat(fileno(file.get()), &info) == 0 && S_ISDIR(info.st_mode)) return fail("it is a directory");
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, count);
    if (text.size() > (S_ISREG(info.st_mode) ? largest_file : largest_stream))
      return fail(S_ISREG(info.st_mode) ? "it is larger than 4 GiB" : "it gives more than 256 MiB");
  }
  if (std::ferror(file.get()) != 0) return fail(std::strerror(errno));
  return text;
}

Result<void> tessera::cli::write_text(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && (file == stdout ? std::fflush(file) : std::fclose(file)) == 0;
  if (!is_written || !is_closed)
    return Error(ErrorCode::io, cat("cannot write ", shown(path), ": ", std::strerror(errno)));
  return {};
}
