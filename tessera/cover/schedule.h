// An order in which the vertices of a contracted graph can run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/cover/precedence.h"

namespace tessera::cover {

/// The groups so that each comes after all groups it needs, preferring the one with the lowest number;
/// nothing if they need each other in a cycle. `group_of` gives the group of each node; groups are numbered
/// from 0 without gaps.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> schedule(const Precedence& graph,
                                                                 std::span<const std::uint32_t> group_of,
                                                                 std::uint32_t groups);

}  // namespace tessera::cover
