#include "tessera/describe/source_places.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::description;

SourcePlaces::SourcePlaces(std::string_view text) : text_(text) {
  Place place{0, 1, 1};
  every_stride_.push_back(place);
  for (std::size_t begin = 0; begin + stride <= text.size(); begin += stride) {
    advance(place, text.substr(begin, stride));
    every_stride_.push_back(place);
  }
}

/// Columns count code points, as everywhere.
void SourcePlaces::advance(Place& place, std::string_view text) {
  for (char c : text) {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++place.column;
    }
  }
}

Place SourcePlaces::at(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  Place place = every_stride_[offset / stride];
  advance(place, text_.substr(offset / stride * stride, offset % stride));
  return place;
}
