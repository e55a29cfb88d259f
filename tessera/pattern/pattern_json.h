// A library of patterns as JSON:
//
//   {"patterns": [{"name": "mm_relu", "nodes": [{"id": "a", "op": "mm", "inputs": ["x", "w"]},
//                                               {"id": "b", "op": "relu", "inputs": ["a"]}],
//                  "outputs": ["b"], "cost": 1.0, "kernel": "gemm_relu"}]}
//
// Nodes have the form of graph nodes (graph_json.h), and conditions where a graph has values; docs/pattern.md
// lists them. A name that is no node id is an external input.
#pragma once

#include <vector>

#include "tessera/base/json.h"
#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

/// The patterns in the order of the file. Errors name the place in the file and the field; two patterns of
/// one name, and a trait that is not known, are errors.
[[nodiscard]] Result<std::vector<Pattern>> read_patterns(const JsonDocument& document,
                                                         const ir::OpFactsRef& facts);

}  // namespace tessera::pattern
