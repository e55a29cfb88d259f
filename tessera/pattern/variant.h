// A pattern with optional nodes stands for several without.
#pragma once

#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

/// Optional nodes beyond this many would make too many variants.
inline constexpr std::size_t optional_node_limit = 6;

/// All variants that have a node, each different one once, the one with all nodes first. An error if a
/// variant has a cycle or does not hang together. REQUIRES references are in range.
[[nodiscard]] Result<std::vector<Variant>> expand_variants(const PatternParts& parts);

/// Whether two nodes ask for the same, apart from what their inputs are.
[[nodiscard]] bool is_same_kind(const PatternNode& a, const PatternNode& b);

}  // namespace tessera::pattern
