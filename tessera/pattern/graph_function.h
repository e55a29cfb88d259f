// A function of the IR as a graph to tile.
//
// Node i is statement i of the body, so a tile says at once which statements it covers. A call is an op;
// everything else (tuples, regions, calls of functions, scalar statements) is opaque: no pattern matches it,
// but what it reads and computes counts. An argument that is no result of a statement is an external with its
// expression: parameters and sizes of the function by variable, scalar parameters by slot, constants and
// scalar expressions by structure.
#pragma once

#include <functional>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// How many operations a statement computes, which is a call.
using StatementOperations = std::function<double(const ir::Assign& statement)>;

/// An error if a variable is assigned twice. The ids of the nodes are the names of their first targets.
[[nodiscard]] Result<Graph> graph_of(const ir::Function& function, ir::OpFactsRef facts,
                                     const StatementOperations& operations_of = {});

}  // namespace tessera::pattern
