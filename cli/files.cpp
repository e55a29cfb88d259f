#include "cli/files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/ir_text.h"
#include "tessera/base/text.h"
#include "tessera/engine/graph_package.h"

using namespace tessera;

namespace {

constexpr std::size_t largest_file = std::size_t{4} << 30;
constexpr std::size_t largest_stream = std::size_t{256} << 20;  // a pipe or a device may have no end

/// What a file is that is no text of the IR, and what to do with it; empty if nothing speaks against it.
std::string_view other_kind(std::string_view content) {
  if (cli::begins_plan(content)) return "a compiled plan: 'tessera run' runs it";
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && content[first] == '{')
    return "JSON: graph descriptions are files for 'tessera validate', 'compile', 'explain' and 'run'";
  if (content.substr(0, 4096).find('\0') != std::string_view::npos)
    return "no text: 'tessera inspect' and 'run' take ONNX models by names that end in .onnx";
  return {};
}

}  // namespace

bool tessera::cli::begins_plan(std::string_view content) {
  return content.starts_with("TSRPLAN\n") || engine::begins_graph(content);
}

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

Result<std::string> tessera::cli::read_ir_text(const std::string& path) {
  std::string out = TESSERA_TRY(read_text(path));
  TESSERA_TRY(check_ir_text(path, out));
  return out;
}

Result<void> tessera::cli::check_ir_text(const std::string& path, std::string_view content) {
  const std::string_view kind = other_kind(content);
  if (kind.empty()) return {};
  return Error(ErrorCode::invalid_argument, cat("expected IR text, but this is ", kind), {shown(path), 0, 0});
}

Result<void> tessera::cli::write_text(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && (file == stdout ? std::fflush(file) : std::fclose(file)) == 0;
  if (!is_written || !is_closed)
    return Error(ErrorCode::io, cat("cannot write ", shown(path), ": ", std::strerror(errno)));
  return {};
}
