// Orders of axes, as transpose has them: axis i of the result is axis permutation[i] of the operand.
#pragma once

#include <optional>
#include <vector>

#include "tessera/ir/function.h"

namespace tessera::compile {

using Permutation = std::vector<std::int64_t>;

/// That of a transpose, with every axis counted from the front; nothing if it is none of `rank` axes.
[[nodiscard]] std::optional<Permutation> permutation_of(const ir::Call& transpose, std::size_t rank);
/// First one, then the other.
[[nodiscard]] Permutation composed(const Permutation& first, const Permutation& second);
[[nodiscard]] bool is_identity(const Permutation& permutation);
/// Whether only axes of size 1 change their place. `shape` is that of the result.
[[nodiscard]] bool keeps_order(const Permutation& permutation, const ir::Shape& shape);

}  // namespace tessera::compile
