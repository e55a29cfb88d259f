// Squares at the end of a lane: a window that repeats the one just before it.
//
// A period is a candidate as soon as the last op, or a longer sequence of ops, was there before; it is then
// followed at constant cost per instruction. Short periods are found the moment their second round ends; a
// long one, whose ops all occur many times in a round, a few rounds later at the latest.
#pragma once

#include "tessera/stream/lane.h"

namespace tessera::stream {

/// Brings the candidates of the lane up to its last step.
void advance_periods(Lane& lane, std::uint64_t longest);

/// Whether the last `period` steps repeat the ones before them.
[[nodiscard]] bool is_square(const Lane& lane, const Lane::Period& period);

}  // namespace tessera::stream
