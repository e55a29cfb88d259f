// A model's bytes without the elements of its large tensors, which stay where they are in the file: what is
// decoded, and so copied, is small then.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::onnx {

/// Where elements lie in the file.
struct Place {
  std::size_t offset = 0;
  std::size_t length = 0;
};

/// The same message in which large `raw_data` of tensors is left out, and where it was stands in their
/// `doc_string`, which is left out of all other tensors. Nothing if the bytes do not decode, or decode in a
/// way that writers do not use; then they are to be decoded as they are.
[[nodiscard]] std::optional<std::string> outline_of(std::span<const std::byte> model);

/// What stands in the doc_string of a tensor of an outline. Nobody may trust it: any file can have it.
[[nodiscard]] std::optional<Place> place_in(std::string_view doc_string);

}  // namespace tessera::onnx
