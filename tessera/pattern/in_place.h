// Which overwriting ops hide no hazard, and what must stay before and after them.
//
// `relu_(x)` means relu(x) as long as nobody reads x, or anything that shares its storage, after it has been
// overwritten. Otherwise the op stays what it is, an op of its own that no pattern of `relu` matches. In both
// cases its readers stay on the side of it on which they were: the storage is overwritten all the same.
#pragma once

#include <utility>
#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// What a node does to storage. Nodes stand in the order in which the program ran them.
struct StorageUse {
  std::vector<ValueId> inputs = {};
  std::vector<ValueId> results = {};
  bool is_view = false;  ///< the results may share the storage of the first input
  std::vector<ValueId> overwritten =
      {};  ///< values that are gone afterwards; the first result shares their storage
};

struct Overwrites {
  std::vector<bool> is_hazard;                    ///< by node: it overwrites what is read later
  std::vector<std::pair<NodeId, NodeId>> orders;  ///< earlier, later: the uses of what is overwritten
};

/// `is_output` says of each value whether somebody reads it after the last node. Near-linear.
[[nodiscard]] Overwrites find_overwrites(const std::vector<StorageUse>& nodes,
                                         const std::vector<bool>& is_output);

}  // namespace tessera::pattern
