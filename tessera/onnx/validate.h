// Whether a model is well formed: names defined once and before they are used, operator sets declared and
// known, functions that end. Operators and their attributes are the business of import.h.
#pragma once

#include "tessera/base/result.h"
#include "tessera/onnx/model.h"

namespace tessera::onnx {

/// The operator sets of ONNX itself whose behaviour is known.
inline constexpr std::int64_t max_opset = 21;

/// The first thing that is wrong, naming file, node and field. Takes time linear in the size of the model.
[[nodiscard]] Result<void> validate(const Model& model, const Limits& limits);

}  // namespace tessera::onnx
