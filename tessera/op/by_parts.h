// What a composite op gets from its decomposition, so that its card need not say it again.
#pragma once

#include "tessera/op/builder.h"

namespace tessera::op {

/// The gradients of a call by those of its parts: writes the decomposition, then goes back through it. The
/// parts that the gradients need are computed again; what the program computes anyway, elimination of common
/// expressions finds. REQUIRES that the card has a decomposition.
Values gradient_by_parts(GradientCall& call);

}  // namespace tessera::op
