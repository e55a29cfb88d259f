// Which names are needed no more after which node: so that a run keeps what is still used, and nothing else.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/onnx/model.h"

namespace tessera::onnx {

/// Per node the names that it is the last to use or to define. Names of the scopes around may be among them.
using LastUses = std::vector<std::vector<std::string_view>>;

/// Names that graphs in attributes take from around their node count as used by it. `outputs` are needed to
/// the end.
[[nodiscard]] LastUses find_last_uses(std::span<const Node> nodes, std::span<const std::string_view> outputs);

}  // namespace tessera::onnx
