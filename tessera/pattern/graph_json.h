// A graph as JSON:
//
//   {"nodes": [{"id": "1", "op": "mm", "inputs": ["x", "w"], "attrs": {}}, …], "outputs": ["2"],
//    "commutative": ["add", "mul"]}
//
// An input that is no node id is an external value; equal names are equal values; a number is a constant.
// "id:k" is result k of a node. Without `outputs` the sinks are the outputs; without `commutative` the traits
// decide. docs/pattern.md has all fields.
#pragma once

#include "tessera/base/json.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// Errors name the place in the file and the field.
[[nodiscard]] Result<Graph> read_graph(const JsonDocument& document, ir::OpFactsRef facts);

}  // namespace tessera::pattern
