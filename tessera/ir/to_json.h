// A graph as JSON, from the lists of fields: {"root": 3, "nodes": [{"kind": "var", "name": "x", "type": 0},
// …]}. Nodes refer to each other by index, so that sharing is kept and depth does not matter.
#pragma once

#include "tessera/base/json.h"
#include "tessera/ir/node.h"

namespace tessera::ir {

JsonWriter& write_graph_json(JsonWriter& json, const Node& root);

}  // namespace tessera::ir
