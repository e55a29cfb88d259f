// Topological orders, and the choice of one in which sets of nodes lie close together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cover/answer.h"
#include "tessera/cover/precedence.h"

namespace tessera::cover {

using NodeSet = std::span<const std::uint32_t>;

/// The nodes so that producers come first, lowest number first; or an error that names a cycle.
[[nodiscard]] Result<std::vector<std::uint32_t>> number_order(const Precedence& graph);

/// The nodes so that producers come first, each as soon as possible after its last producer: along a chain to
/// its end, then the next. REQUIRES no cycle.
[[nodiscard]] std::vector<std::uint32_t> chain_order(const Precedence& graph);

/// The nodes so that producers come first, each as late as its first consumer allows: a depth-first walk from
/// the sinks. REQUIRES no cycle.
[[nodiscard]] std::vector<std::uint32_t> demand_order(const Precedence& graph);

/// The nodes so that producers come first, and next always the one that brings in the fewest nodes that share
/// a set with it and with none before. Takes time in the sum of the squares of the sets' sizes. REQUIRES no
/// cycle.
[[nodiscard]] std::vector<std::uint32_t> narrow_order(const Precedence& graph, std::span<const NodeSet> sets);

/// A guess at the number of states that a walk along `order` meets. At each place, sets that have begun can
/// have covered some of the nodes ahead; the states are subsets of those, about as many as for half of them.
[[nodiscard]] std::uint64_t frontier_size(std::span<const std::uint32_t> order,
                                          std::span<const NodeSet> sets);

/// One of the above with a small frontier, of those that the effort leaves room to look for; or an error that
/// names a cycle.
[[nodiscard]] Result<std::vector<std::uint32_t>> choose_order(const Precedence& graph,
                                                              std::span<const NodeSet> sets, Effort& effort);

}  // namespace tessera::cover
