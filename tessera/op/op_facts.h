// What the cards say of ops, for those who know ops by name alone.
//
// A card lists what its op is called elsewhere (Card::onnx, Card::spellings). A namespace in front
// (`torch.nn.functional.relu`, `aten::add.Tensor`) is taken off first; overwriting and reflected forms (`add_`,
// `__iadd__`, `operator.iadd`, `__radd__`) follow from the others. Names are case-sensitive: `Max` is ONNX's
// element-wise maximum, `max` a reduction.
#pragma once

#include <optional>

#include "tessera/ir/op_facts.h"

namespace tessera::op {

/// Of all ops, a program's own included.
[[nodiscard]] const ir::OpFactsRef& op_facts();

/// What the name means, if it is known, namespace or not.
[[nodiscard]] std::optional<ir::OpSpelling> find_spelling(std::string_view name);

}  // namespace tessera::op
