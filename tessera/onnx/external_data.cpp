#include "tessera/onnx/external_data.h"

#include <charconv>
#include <string_view>

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

/// Only if no other name leads to it.
Result<Bytes> tessera::onnx::ExternalFiles::map(const std::string& location) const {
  if (!folder_) return refused(location, "cannot be read: the model has no folder");
  const auto file = folder_->open(location);
  if (!file) return Error(file.error().code(), cat("external data ", file.error().message()));
  if (file->status().st_nlink != 1) return refused(location, "has several hard links");
  return file->map();
}

Result<Bytes> tessera::onnx::ExternalFiles::read(const ExternalLocation& at) {
  auto file = files_.find(at.location);
  if (file == files_.end()) file = files_.emplace(at.location, TESSERA_TRY(map(at.location))).first;
  const auto size = static_cast<std::int64_t>(file->second.size());
  const std::int64_t length = at.length < 0 ? size - at.offset : at.length;
  if (at.offset > size || length > size - at.offset)
    return refused(at.location,
                   cat("has ", size, " bytes, too few for ", length, " from ", at.offset, " on"));
  auto owner = std::make_shared<const Bytes>(file->second);
  return Bytes(owner->span().subspan(static_cast<std::size_t>(at.offset), static_cast<std::size_t>(length)),
               owner);
}
