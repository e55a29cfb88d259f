// Elements of tensors in files beside a model. A model names any path; only regular files inside its own
// folder are read, and only if no link leads there.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "tessera/base/bytes.h"
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
  /// `folder` is that of the model; empty if it has none, then every location is an error.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  /// The bytes at a location, mapped; offset and length are checked against the size of the file first.
  [[nodiscard]] Result<Bytes> read(const ExternalLocation& at);

 private:
  std::string folder_;
  std::map<std::string, Bytes> files_;  ///< by location, each mapped once
};

}  // namespace tessera::onnx
