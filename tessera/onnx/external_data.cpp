#include "tessera/onnx/external_data.h"

#include <sys/stat.h>

#include <charconv>
#include <string_view>

#include "tessera/base/file.h"
#include "tessera/onnx/model.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Error refused(const std::string& location, std::string_view why) {
  return Error(ErrorCode::invalid_argument, cat("external data ", shown(location), " ", why));
}

Result<std::int64_t> number(const std::string& key, const std::string& text) {
  std::int64_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || out < 0)
    return Error(ErrorCode::parse,
                 cat("field 'external_data' has ", shown(text), " for '", key, "', expected a size"));
  return out;
}

/// The parts of a path that goes down only.
Result<std::vector<std::string>> parts_of(const std::string& location) {
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos ||
      location.find('\\') != std::string::npos)
    return refused(location, "is no path inside the model's folder");
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= location.size()) {
    const std::size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..")
      return refused(location, "is no path inside the model's folder");
    out.push_back(part);
    begin = end + 1;
  }
  return out;
}

/// Fails unless every folder on the way is one, and the file is a regular one that no other name leads to.
Result<std::string> checked_path(const std::string& folder, const std::string& location) {
  const auto parts = TESSERA_TRY(parts_of(location));
  std::string path = folder;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    path += cat("/", parts[i]);
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return refused(location, "cannot be found");
    if (S_ISLNK(info.st_mode)) return refused(location, "is or goes through a symbolic link");
    if (i + 1 < parts.size()) continue;
    if (!S_ISREG(info.st_mode)) return refused(location, "is no regular file");
    if (info.st_nlink != 1) return refused(location, "has several hard links");
  }
  return path;
}

}  // namespace

Result<ExternalLocation> tessera::onnx::parse_location(
    std::span<const std::pair<std::string, std::string>> entries) {
  ExternalLocation out;
  for (const auto& [key, value] : entries) {
    if (key == "location")
      out.location = value;
    else if (key == "offset")
      out.offset = TESSERA_TRY(number(key, value));
    else if (key == "length")
      out.length = TESSERA_TRY(number(key, value));
    else if (key != "checksum")
      return Error(ErrorCode::parse, cat("field 'external_data' has the unknown key ", shown(key)));
  }
  return out;
}

Result<Bytes> tessera::onnx::ExternalFiles::read(const ExternalLocation& at) {
  if (folder_.empty()) return refused(at.location, "cannot be read: the model has no folder");
  auto file = files_.find(at.location);
  if (file == files_.end()) {
    const std::string path = TESSERA_TRY(checked_path(folder_, at.location));
    file = files_.emplace(at.location, TESSERA_TRY(map_file(path))).first;
  }
  const auto size = static_cast<std::int64_t>(file->second.size());
  const std::int64_t length = at.length < 0 ? size - at.offset : at.length;
  if (at.offset > size || length > size - at.offset)
    return refused(at.location,
                   cat("has ", size, " bytes, too few for ", length, " from ", at.offset, " on"));
  auto owner = std::make_shared<const Bytes>(file->second);
  return Bytes(owner->span().subspan(static_cast<std::size_t>(at.offset), static_cast<std::size_t>(length)),
               owner);
}
