// Checks a schedule that validation did not make but somebody read from a file: what runs it relies on all of
// this. Nothing is ordered or placed anew.
#pragma once

#include "tessera/describe/validate.h"

namespace tessera::description {

/// The program of a description and the schedule that was made of it. Fails, with all that is wrong with it,
/// for a description that is not valid, and with the first thing for a schedule that
///   - has not every step of every scope once, with the resets and zeros that are needed,
///   - lets a step begin before what an edge, a dependency or an access says must come first,
///   - gives memory to two buffers that hold something at once.
[[nodiscard]] Result<std::shared_ptr<const Program>> verified_program(
    std::shared_ptr<const Description> description, Schedule schedule);

}  // namespace tessera::description
