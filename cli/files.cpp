#include "cli/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/ir_text.h"
#include "tessera/base/environment.h"
#include "tessera/base/text.h"
#include "tessera/engine/graph_package.h"

using namespace tessera;

namespace {

constexpr std::size_t largest_file = std::size_t{4} << 30;
constexpr std::size_t largest_stream = std::size_t{256} << 20;  // a pipe or a device may have no end

Error cannot_read(const std::string& path, std::string_view why) {
  return Error(ErrorCode::io, cat("cannot read ", cli::shown(path), ": ", why));
}

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

Result<cli::LineReader> tessera::cli::LineReader::open(const std::string& path) {
  LineReader out(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), path);
  if (out.file_ == nullptr) return cannot_read(path, std::strerror(errno));
  struct stat info {};
  if (fstat(fileno(out.file_.get()), &info) == 0 && S_ISDIR(info.st_mode))
    return cannot_read(path, "it is a directory");
  return out;
}

Result<bool> tessera::cli::LineReader::next(std::string& line) {
  constexpr std::size_t longest_line = std::size_t{64} << 20;
  line.clear();
  ++lines_;
  char buffer[1 << 12];
  while (std::fgets(buffer, sizeof buffer, file_.get()) != nullptr) {
    line += buffer;
    if (line.ends_with('\n')) {
      line.pop_back();
      return true;
    }
    if (line.size() > longest_line) return cannot_read(path_, cat("line ", lines_, " is longer than 64 MiB"));
    if (!std::feof(file_.get()) && std::strlen(buffer) + 1 < sizeof buffer)
      return cannot_read(path_, cat("line ", lines_, " holds a zero byte: it is no text"));
  }
  if (std::ferror(file_.get()) != 0) return cannot_read(path_, std::strerror(errno));
  return !line.empty();
}

Result<std::string> tessera::cli::read_text(const std::string& path) {
  const auto fail = [&](const char* why) { return cannot_read(path, why); };
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
  if (S_ISREG(info.st_mode) && info.st_size > 0)
    text.reserve(std::min(static_cast<std::size_t>(info.st_size), largest_file) + 1);
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

Result<ir::NodeRef> tessera::cli::parse_ir_text(const std::string& path, std::string_view text,
                                                ir::FreeVariables* free_variables) {
  ir::ParseOptions options{.file = shown(path), .free_variables = free_variables};
  if (const char* given = environment("TESSERA_MAX_NODES")) {
    const auto end = std::from_chars(given, given + std::strlen(given), options.max_nodes);
    if (end.ec != std::errc() || *end.ptr != '\0' || options.max_nodes == 0)
      return Error(ErrorCode::invalid_argument, cat("TESSERA_MAX_NODES: '", printable(given),
                                                    "' is no number of nodes, expected one from 1 on"));
  }
  auto node = ir::parse(text, options);
  if (!node && node.error().code() == ErrorCode::limit)
    return std::move(node).error().note("the environment variable TESSERA_MAX_NODES raises the limit");
  return node;
}

Result<void> tessera::cli::check_can_write(const std::string& path) {
  if (path == "-") return {};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  struct stat info {};
  const bool is_there = stat(path.c_str(), &info) == 0;
  const char* why = nullptr;
  if (is_there && S_ISDIR(info.st_mode))
    why = "it is a directory";
  else if (::access(folder.c_str(), W_OK) != 0 && !(is_there && ::access(path.c_str(), W_OK) == 0))
    why = std::strerror(errno);
  if (why == nullptr) return {};
  return Error(ErrorCode::io, cat("cannot write ", shown(path), ": ", why));
}

Result<void> tessera::cli::write_text(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && (file == stdout ? std::fflush(file) : std::fclose(file)) == 0;
  if (!is_written || !is_closed)
    return Error(ErrorCode::io, cat("cannot write ", shown(path), ": ", std::strerror(errno)));
  return {};
}
