// Elements of tensors in files beside a model. A model names any path; only regular files inside its own
// folder are read, and only if no link leads there (base/open_file.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tessera/base/bytes.h"
#include "tessera/base/open_file.h"
#include "tessera/base/result.h"

namespace tessera::onnx {

/// What a tensor says about its elements.
struct ExternalLocation {
  std::string location;  ///< a path relative to the folder of the model
  std::int64_t offset = 0;
  std::int64_t length = -1;  ///< to the end of the file if negative
};

/// From keys and values as the format has them; an unknown key, or a number that is none, is an error.
[[nodiscard]] Result<ExternalLocation> parse_location(
    std::span<const std::pair<std::string, std::string>> entries);

class ExternalFiles {
 public:
  /// `folder` is that of the model; without one every location is an error.
  explicit ExternalFiles(std::optional<BaseFolder> folder) : folder_(std::move(folder)) {}

  /// The bytes at a location, mapped; offset and length are checked against the size of the file first. A
  /// file is opened once: all of its tensors are of what it was then.
  [[nodiscard]] Result<Bytes> read(const ExternalLocation& at);

 private:
  [[nodiscard]] Result<Bytes> map(const std::string& location) const;

  std::optional<BaseFolder> folder_;
  std::map<std::string, Bytes> files_;  ///< by location, each mapped once
};

}  // namespace tessera::onnx
