// Lines and columns of many offsets in one text, each in constant time.
#pragma once

#include <string_view>
#include <vector>

#include "tessera/describe/description.h"

namespace tessera::description {

class SourcePlaces {
 public:
  /// The text must outlive it.
  explicit SourcePlaces(std::string_view text);
  [[nodiscard]] Place at(std::size_t offset) const;

 private:
  static constexpr std::size_t stride = 256;
  static void advance(Place& place, std::string_view text);

  std::string_view text_;
  std::vector<Place> every_stride_;
};

}  // namespace tessera::description
