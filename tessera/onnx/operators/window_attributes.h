// The attributes that convolutions and pooling share: strides, pads, dilations, auto_pad.
#pragma once

#include "tessera/onnx/mapping.h"

namespace tessera::onnx {

struct WindowAttributes {
  std::vector<std::int64_t> kernel, strides, dilations, pads;  ///< pads: all begins, then all ends
  std::string auto_pad;
};

/// The attributes of a node whose window has these sizes, defaults filled in. SAME_UPPER and SAME_LOWER are
/// worked out from the sizes of `x`.
[[nodiscard]] Result<WindowAttributes> window_attributes(NodeCall& node, Value x,
                                                         std::vector<std::int64_t> kernel);

}  // namespace tessera::onnx
