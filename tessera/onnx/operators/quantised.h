// Quantising by what a tensor holds, as DynamicQuantizeLinear and operators made of it do.
#pragma once

#include "tessera/onnx/mapping.h"

namespace tessera::onnx {

struct DynamicallyQuantised {
  Value steps;  ///< u8
  Value scale;
  Value zero;  ///< u8
};

/// x as (steps - zero) * scale, with 0 among the values it can have.
[[nodiscard]] DynamicallyQuantised dynamically_quantised(Value x);

}  // namespace tessera::onnx
