// Dtypes and shapes: of buffers against the pins that use them, and of the buffers that nobody declared.
#pragma once

#include "tessera/describe/schedule.h"

namespace tessera::description {

/// Checks every node in program order and gives types to the buffers that writing pins got. A buffer that a
/// broken node writes may stay without one; what reads it is then not checked.
void check_types(Graph& graph, const std::vector<Sequence>& sequences, Report& report);
/// The same of one node.
void check_types(Graph& graph, std::uint32_t node, Report& report);

/// Whether a number can be stored as a dtype: integers in range, and no fraction where there are none.
[[nodiscard]] bool fits(const ScalarValue& value, Dtype dtype);

/// Whether a double has the value of a number; not so of most integers beyond 2^53.
[[nodiscard]] bool is_exact_double(const ScalarValue& value);

/// The dtype of a number: declared; of an op the one its card asks for, or that of its first tensor; else the
/// widest of its kind.
[[nodiscard]] Dtype scalar_dtype(const Graph& graph, const GraphNode& node, const Pin& pin);

}  // namespace tessera::description
