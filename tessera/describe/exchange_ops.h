// A program whose description differs from one before in the ops that some nodes call. Names, order, memory
// and all other nodes are as they were, so that only these nodes are looked at.
#pragma once

#include <span>

#include "tessera/describe/validate.h"

namespace tessera::description {

/// The program of `description`, in which only `nodes` call other ops than in that of `before`. Null if there
/// is more to it, also an error: validate() says what.
[[nodiscard]] std::shared_ptr<const Program> exchange_ops(const Program& before,
                                                          std::shared_ptr<const Description> description,
                                                          std::span<const std::uint32_t> nodes);

}  // namespace tessera::description
